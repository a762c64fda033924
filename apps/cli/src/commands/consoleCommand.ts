/** The flags of `purser console`. */
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { inTelemetry } from "./inTelemetry.ts"
import { portFlag } from "./portFlag.ts"
import { actorFlag } from "./recordFlags.ts"

/** `purser console` */
export const consoleCommand = Command.make("console", {
  host: Flag.String("host").pipe(Flag.withDescription("Where to listen (default: PURSER_CONSOLE_HOST, else 127.0.0.1); elsewhere than on this machine a token is needed"), Flag.optional),
  port: portFlag.pipe(Flag.withDescription("The port; 0 takes a free one (default: PURSER_CONSOLE_PORT, else 4280)"), Flag.optional),
  readOnly: Flag.Boolean("read-only").pipe(Flag.withDescription("Look, and do nothing"), Flag.withDefault(false)),
  actor: actorFlag.pipe(Flag.withDescription("Who acts where nobody has to sign in, for the record (default: your user name)"))
}, Effect.fnUntraced(function*(given) {
  const { serveConsole } = yield* Effect.promise(() => import("../handlers/console.ts"))
  return yield* inTelemetry("console", serveConsole({
    host: Option.getOrUndefined(given.host),
    port: Option.getOrUndefined(given.port),
    readOnly: given.readOnly,
    actor: given.actor
  }))
})).pipe(
  Command.withDescription("Serve the operator's web page: runs, charges, what waits for a person, caps, workers, reconciliation"),
  Command.withExamples([
    { command: "purser console", description: "On this machine alone, over the configured ledger" },
    { command: "PURSER_CONSOLE_TOKEN=… PURSER_CONSOLE_ALLOW_PLAIN=true purser console --host 0.0.0.0", description: "For others, behind a token" }
  ])
)
