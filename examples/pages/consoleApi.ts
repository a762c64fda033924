// #region
import { ConsoleClient } from "@purser/console/ConsoleClient"
import { Effect, Redacted } from "effect"

const waiting = Effect.flatMap(ConsoleClient, (client) => client.attention.list()).pipe(
  Effect.provide(ConsoleClient.layer({ url: "https://purser.example", token: Redacted.make("…"), actor: "month-end check" }))
)
// #endregion

// Nobody serves at this name: it is not asked.
console.log(Effect.isEffect(waiting))
