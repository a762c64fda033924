/** The flags of `purser webhooks`. */
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { inTelemetry } from "./inTelemetry.ts"
import { portFlag } from "./portFlag.ts"
import { reasonFlag } from "./recordFlags.ts"

const json = Flag.Boolean("json").pipe(Flag.withDescription("Print JSON"), Flag.withDefault(false))
const limit = Flag.Int("limit").pipe(Flag.withDescription("How many at the most"), Flag.withDefault(100))
const load = Effect.promise(() => import("../handlers/webhooks.ts"))

/** `purser webhooks`, `purser webhooks list | unknown | resolve` */
export const webhooksCommand = Command.make("webhooks", {
  host: Flag.String("host").pipe(Flag.withDescription("The address to listen on (default: PURSER_WEBHOOK_HOST, else 127.0.0.1)"), Flag.optional),
  port: portFlag.pipe(Flag.withDescription("The port; 0 takes a free one (default: PURSER_WEBHOOK_PORT, else 4242)"), Flag.optional),
  path: Flag.String("path").pipe(Flag.withDescription("The path of the endpoint (default: PURSER_WEBHOOK_PATH, else /webhooks/stripe)"), Flag.optional)
}, Effect.fnUntraced(function*(given) {
  return yield* inTelemetry("webhooks", (yield* load).serve({ host: Option.getOrUndefined(given.host), port: Option.getOrUndefined(given.port), path: Option.getOrUndefined(given.path) }))
})).pipe(
  Command.withDescription("Serve Stripe's webhooks, and deal with what they bring, until stopped"),
  Command.withExamples([
    { command: "PURSER_WEBHOOK_SECRET=whsec_… purser webhooks", description: "Behind a proxy that speaks https" },
    { command: "purser webhooks unknown", description: "Objects that an event named and that belong to no charge" }
  ]),
  Command.withSubcommands([
    Command.make("list", { json, limit }, Effect.fnUntraced(function*(given) {
      return yield* (yield* load).list(given)
    })).pipe(Command.withDescription("Show the newest events and what came of them")),
    Command.make("unknown", { json, limit }, Effect.fnUntraced(function*(given) {
      return yield* (yield* load).unknown(given)
    })).pipe(Command.withDescription("Show objects that belong to no charge")),
    Command.make("resolve", {
      id: Argument.String("ID").pipe(Argument.withDescription("An object of the list")),
      reason: reasonFlag.pipe(Flag.withDescription("Why, for the record"))
    }, Effect.fnUntraced(function*(given) {
      return yield* (yield* load).resolve(given)
    })).pipe(Command.withDescription("Take an object off that list, with a reason that is kept"))
  ])
)
