/** The flags of `purser broker`. */
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { inTelemetry } from "./inTelemetry.ts"

/** `purser broker` */
export const brokerCommand = Command.make("broker", {
  endpoint: Flag.String("endpoint").pipe(
    Flag.withDescription("Where clients and workers find it (default: PURSER_ENDPOINT, else tcp://127.0.0.1:5555)"),
    Flag.optional
  )
}, Effect.fnUntraced(function*(given) {
  const { broker } = yield* Effect.promise(() => import("../handlers/broker.ts"))
  return yield* inTelemetry("broker", broker({ endpoint: Option.getOrUndefined(given.endpoint) }))
})).pipe(
  Command.withDescription(
    "Pass requests from clients to workers that come and go (Majordomo), until stopped. " +
      "PURSER_HEARTBEAT (1 second): a worker is dropped within three of them. PURSER_BROKER_QUEUE (10000): requests that wait at the most. " +
      "With keys (PURSER_CURVE_KEY_FILE, PURSER_CURVE_CLIENTS) only the fleet's key may work. " +
      "With PURSER_DATABASE_URL messages that cannot be read are kept for purser dead-letters"
  ),
  Command.withExamples([
    { command: "purser broker --endpoint tcp://127.0.0.1:5555", description: "Then, for clients and workers alike: PURSER_TRANSPORT=majordomo and the same endpoint" }
  ])
)
