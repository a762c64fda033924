import { ZmqRpc } from "@purser/transport-zeromq"
import { Console, Effect, Layer, Schema, Stream } from "effect"
import { Rpc, RpcClient, RpcGroup, RpcServer } from "effect/rpc"

class Prices extends RpcGroup.make(
  Rpc.make("price", { payload: { item: Schema.String }, success: Schema.Int, error: Schema.String }),
  Rpc.make("ticks", { payload: { count: Schema.Int }, success: Schema.Int, stream: true })
) {}

const endpoint = "ipc:///tmp/purser-example-rpc"
const handlers = Prices.toLayer({
  price: ({ item }) => item === "moon" ? Effect.fail("not for sale") : Effect.succeed(250),
  ticks: ({ count }) => Stream.range(1, count)
})
const server = RpcServer.layer(Prices).pipe(Layer.provide(handlers), Layer.provide(ZmqRpc.layerServerProtocol({ endpoint })))

const program = Effect.gen(function*() {
  const prices = yield* RpcClient.make(Prices)
  yield* Console.log("pear", yield* prices.price({ item: "pear" }))
  yield* Console.log("moon", yield* Effect.flip(prices.price({ item: "moon" })))
  yield* Console.log("ticks", (yield* Stream.runCollect(prices.ticks({ count: 5 }))).join(" "))
}).pipe(Effect.provide(ZmqRpc.layerClientProtocol({ endpoint })))

await Effect.runPromise(Effect.scoped(Effect.provide(program, server)))
