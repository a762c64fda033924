import { RouterDealer } from "@purser/transport-zeromq"
import { Console, Effect, Schema } from "effect"

class SoldOut extends Schema.TaggedError<SoldOut>("example/SoldOut")("SoldOut", { item: Schema.String }) {}

/** Both sides import this value. Big integers and dates are JSON on the way only. */
const Quotes = {
  request: Schema.Struct({ item: Schema.String, count: Schema.BigInt }),
  reply: Schema.Struct({ total: Schema.BigInt, validUntil: Schema.Date }),
  error: SoldOut
}
const endpoint = "ipc:///tmp/purser-example-router-dealer"

const program = Effect.gen(function*() {
  yield* Effect.forkChild(RouterDealer.serve({ ...Quotes, endpoint }, ({ count, item }) =>
    item === "moon" ? Effect.fail(new SoldOut({ item })) : Effect.succeed({ total: count * 250n, validUntil: new Date(0) })))
  const { request } = yield* RouterDealer.client({ ...Quotes, endpoint, window: 100 })
  const quotes = yield* Effect.forEach([1n, 2n, 3n], (count) => request({ item: "pear", count }), { concurrency: "unbounded" })
  yield* Console.log(quotes.map(({ total }) => total).join(" "))
  const { item } = yield* Effect.flip(Effect.catchTag(request({ item: "moon", count: 1n }), "TransportError", Effect.die))
  yield* Console.log("sold out:", item)
})

await Effect.runPromise(Effect.scoped(program))
