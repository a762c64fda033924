/** `purser keygen NAME`: a CURVE key pair as two certificate files. */
import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"

/** `purser keygen` */
export const keygenCommand = Command.make("keygen", {
  name: Argument.String("NAME").pipe(Argument.withDescription("Whose key it is: the name on the event trail, such as billing-producer")),
  folder: Flag.String("out").pipe(Flag.withDescription("Folder for the two files (default: the current one)"), Flag.withDefault("."))
}, Effect.fnUntraced(function*(given) {
  const { keygen } = yield* Effect.promise(() => import("../handlers/keygen.ts"))
  return yield* keygen(given)
})).pipe(
  Command.withDescription("Make a CURVE key pair: a public certificate to give away and a secret one to keep"),
  Command.withExamples([
    { command: "purser keygen fleet --out keys", description: "The key that workers, brokers and forwarders share" },
    { command: "purser keygen billing-producer --out keys", description: "One for each producer; copy its .key into the fleet's PURSER_CURVE_CLIENTS folder" }
  ])
)
