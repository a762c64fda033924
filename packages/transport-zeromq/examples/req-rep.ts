import { ReqRep } from "@purser/transport-zeromq"
import { Console, Effect, Schema } from "effect"

const Celsius = { request: Schema.Struct({ city: Schema.String }), reply: Schema.Finite }
const endpoint = "ipc:///tmp/purser-example-req-rep"

const program = Effect.gen(function*() {
  yield* Effect.forkChild(ReqRep.serve({ ...Celsius, endpoint }, ({ city }) => Effect.succeed(city === "Oslo" ? 4 : 21)))
  // After a second of silence the question leaves again from another socket.
  const { request } = yield* ReqRep.client({ ...Celsius, endpoint, requestTimeout: "1 second" })
  yield* Console.log("Oslo", yield* request({ city: "Oslo" }))
})

await Effect.runPromise(Effect.scoped(program))
