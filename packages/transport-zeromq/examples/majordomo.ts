import { Broker, Majordomo } from "@purser/transport-zeromq"
import { Console, Effect, Schema } from "effect"

// A service by its name: workers come and go, and the client knows only the broker.
const quote = {
  service: "quote",
  request: Schema.Struct({ plan: Schema.String, seats: Schema.Int }),
  reply: Schema.Struct({ totalMinor: Schema.Int })
}

const program = Effect.gen(function*() {
  const { bound } = yield* Broker.open({ endpoint: "tcp://127.0.0.1:*" })
  yield* Effect.forkChild(Majordomo.serve({ ...quote, endpoint: bound }, ({ seats }) => Effect.succeed({ totalMinor: seats * 1900 })))
  const { request } = yield* Majordomo.client({ ...quote, endpoint: bound })
  yield* Console.log(yield* request({ plan: "team", seats: 3 }))
})

await Effect.runPromise(Effect.scoped(program))
