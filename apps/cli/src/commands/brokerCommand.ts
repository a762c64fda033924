/** The flags of `purser broker`. */
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"

/** `purser broker` */
export const brokerCommand = Command.make("broker", {
  endpoint: Flag.String("endpoint").pipe(
    Flag.withDescription("Where clients and workers find it (default: PURSER_ENDPOINT, else tcp://127.0.0.1:5555)"),
    Flag.optional
  )
}, Effect.fnUntraced(function*(given) {
  const { broker } = yield* Effect.promise(() => import("../handlers/broker.ts"))
  return yield* broker({ endpoint: Option.getOrUndefined(given.endpoint) })
})).pipe(
  Command.withDescription("Pass requests from clients to workers that come and go (Majordomo), until stopped"),
  Command.withExamples([
    { command: "purser broker --endpoint tcp://127.0.0.1:5555", description: "Then, for clients and workers alike: PURSER_TRANSPORT=majordomo and the same endpoint" }
  ])
)
