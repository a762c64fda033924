/** The flags of `purser worker`. */
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { inTelemetry } from "./inTelemetry.ts"

/** `purser worker` */
export const workerCommand = Command.make("worker", {
  transport: Flag.Literals("transport", ["req-rep", "router-dealer", "push-pull", "pub-sub", "majordomo"]).pipe(
    Flag.withDescription("How requests arrive (default: PURSER_TRANSPORT, else req-rep)"),
    Flag.optional
  ),
  endpoint: Flag.String("endpoint").pipe(
    Flag.withDescription("Where to serve (default: PURSER_ENDPOINT, else tcp://127.0.0.1:5555); '>' in front connects instead of binding, '@' binds; with majordomo the broker's address"),
    Flag.optional
  ),
  feed: Flag.Boolean("feed").pipe(Flag.withDescription("Publish the ledger's events too, as purser feed does"), Flag.withDefault(false))
}, Effect.fnUntraced(function*(given) {
  const { worker } = yield* Effect.promise(() => import("../handlers/worker.ts"))
  return yield* inTelemetry("worker", worker({ endpoint: Option.getOrUndefined(given.endpoint), transport: Option.getOrUndefined(given.transport), feed: given.feed }))
})).pipe(
  Command.withDescription(
    "Serve charge requests, and sweep what other workers left, until stopped. " +
      "Plain messages of push-pull and pub-sub are answered at PURSER_ACK_ENDPOINT. " +
      "Keys for sockets that other machines reach: PURSER_CURVE_KEY_FILE, with PURSER_CURVE_CLIENTS for who may come in (purser keygen makes them)"
  ),
  Command.withExamples([
    { command: "PURSER_DATABASE_URL=postgres://… purser worker", description: "One worker on PostgreSQL; start as many as you like, each on its own endpoint" },
    { command: "purser worker --transport push-pull --endpoint '>tcp://127.0.0.1:5556'", description: "Behind a forwarder, or where the client binds" }
  ])
)
