import { Forwarder } from "@purser/transport-zeromq"
import { Console, Effect } from "effect"
import { Pull, Push } from "zeromq"

// Two sides that know only the device between them. It never looks into a message: any bytes will do.
const program = Effect.gen(function*() {
  const { backend, frontend } = yield* Forwarder.open({ device: "streamer", frontend: "tcp://127.0.0.1:*", backend: "tcp://127.0.0.1:*" })
  const producer = yield* Effect.acquireRelease(Effect.sync(() => new Push()), (socket) => Effect.sync(() => socket.close()))
  const worker = yield* Effect.acquireRelease(Effect.sync(() => new Pull()), (socket) => Effect.sync(() => socket.close()))
  producer.connect(frontend[0]!)
  worker.connect(backend[0]!)
  yield* Effect.promise(() => producer.send("for whoever is there"))
  const [message] = yield* Effect.promise(() => worker.receive())
  yield* Console.log(String(message))
})

await Effect.runPromise(Effect.scoped(program))
