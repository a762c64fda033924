import { PubSub } from "@purser/transport-zeromq"
import { Console, Effect, Fiber, Schema, Stream } from "effect"

// Any schema will do. Each topic's messages are counted, so that a subscriber knows how many it missed.
const Price = Schema.Struct({ plan: Schema.String, amountMinor: Schema.Int })
const endpoint = "inproc://prices"

const program = Effect.gen(function*() {
  const prices = yield* PubSub.publisher({ endpoint, schema: Price })
  const subscriber = yield* PubSub.subscribe({ endpoint, schema: Price, topics: ["eur"] }).pipe(
    Stream.tap((received) => Console.log(received._tag, received.topic, received._tag === "Message" ? received.message.amountMinor : "")),
    Stream.take(2),
    Stream.runDrain,
    Effect.forkChild
  )
  // A subscription takes its time, and what is published before it has arrived is not received: so it is said until it was heard.
  const say = Effect.andThen(prices.publish("usd", { plan: "team", amountMinor: 2100 }), prices.publish("eur", { plan: "team", amountMinor: 1900 }))
  yield* Effect.raceFirst(Fiber.join(subscriber), Effect.forever(Effect.andThen(say, Effect.sleep("10 millis"))))
})

await Effect.runPromise(Effect.scoped(program))
