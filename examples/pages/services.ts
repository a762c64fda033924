import { RouterDealer } from "@purser/transport-zeromq"
import { Console, Effect, Schema } from "effect"

class SoldOut extends Schema.TaggedError<SoldOut>("examples/SoldOut")("SoldOut", { item: Schema.String }) {}
const endpoint = `ipc:///tmp/purser-quotes-${process.pid}`

// #region
const Quotes = {
  request: Schema.Struct({ item: Schema.String, count: Schema.BigInt }),
  reply: Schema.Struct({ total: Schema.BigInt, validUntil: Schema.Date }),
  error: SoldOut // a schema of what the handler may fail with; may be left out
}
// the server; it lives until it is interrupted
const serving = RouterDealer.serve({ ...Quotes, endpoint }, ({ count, item }) =>
  item === "moon" ? Effect.fail(new SoldOut({ item })) : Effect.succeed({ total: count * 250n, validUntil: new Date(0) }))
// a client; it lives as long as its scope
const quote = Effect.gen(function*() {
  const { request, requestAll } = yield* RouterDealer.client({ ...Quotes, endpoint, window: 100 })
  const one = yield* request({ item: "apple", count: 3n })
  const each = yield* requestAll([{ item: "pear", count: 1n }, { item: "moon", count: 1n }]) // a Result for each, in order
  return [one.total, ...each.map((result) => result._tag)]
})
// #endregion

await Effect.runPromise(Effect.gen(function*() {
  yield* Effect.forkScoped(serving)
  yield* Console.log((yield* quote).join(" "))
}).pipe(Effect.scoped))
