// #region
import { ConsoleClient } from "@purser/console/ConsoleClient"
import { Effect, Redacted } from "effect"

const waiting = Effect.flatMap(ConsoleClient, (client) => client.attention.list()).pipe(
  Effect.provide(ConsoleClient.layer({ url: "http://127.0.0.1:4280", token: Redacted.make("…") }))
)
// #endregion

// No console serves here.
console.log(await Effect.runPromise(Effect.match(waiting, { onFailure: () => "nobody answers", onSuccess: () => "somebody answers" })))
