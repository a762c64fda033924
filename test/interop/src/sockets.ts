/** Bare sockets, as another program has them, and servers of ours; all closed with the test. */
import type { ChargeHandler, ChargeServer } from "@purser/core"
import { ChargeServer as Server } from "@purser/core"
import { Context, Effect, Layer, Scope } from "effect"
import { Broker, ZmqTransport } from "@purser/transport-zeromq"
import { createServer } from "node:net"
import type * as zmq from "zeromq"
import type { Addresses, Pattern } from "./PyzmqPeer.ts"

const servers = {
  "req-rep": ZmqTransport.layerReqRepServer,
  "router-dealer": ZmqTransport.layerRouterDealerServer,
  "push-pull": ZmqTransport.layerPushPullServer,
  "pub-sub": ZmqTransport.layerPubSubServer,
  majordomo: ZmqTransport.layerMajordomoServer
}

/** An address of the loopback that nothing listens on just now. */
export const freeAddress: Effect.Effect<string> = Effect.callback((resume) => {
  const server = createServer()
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    server.close(() => resume(typeof address === "object" && address !== null ? Effect.succeed(`tcp://127.0.0.1:${address.port}`) : Effect.die("no port")))
  })
})

/** A socket of the addon. */
export const bare = <S extends zmq.Socket>(make: () => S) => Effect.acquireRelease(Effect.sync(make), (socket) => Effect.sync(() => socket.close()))

/** Serves until the returned scope closes, or the test ends. */
export const serveOn = Effect.fnUntraced(function*(layer: Layer.Layer<ChargeServer, unknown>, handler: ChargeHandler) {
  const scope = yield* Scope.fork(yield* Effect.scope)
  const server = Context.get(yield* Layer.buildWithScope(layer, scope), Server)
  yield* Effect.forkIn(server.serve(handler), scope)
  return scope
})

/** Servers of plain senders, by pattern; with majordomo there is a broker before it. */
export const servePlain = Effect.fnUntraced(function*(pattern: Pattern, addresses: Addresses, handler: ChargeHandler) {
  if (pattern === "majordomo") yield* Broker.open({ endpoint: addresses.endpoint, drainTimeout: 0 })
  return yield* serveOn(servers[pattern](addresses), handler)
})

/** Sends frames. */
export const send = (socket: { readonly send: (frames: Array<string | Uint8Array>) => Promise<void> }, ...frames: ReadonlyArray<string | Uint8Array>) =>
  Effect.promise(() => socket.send([...frames]))

/** Receives the frames of one message. */
export const receive = (socket: { readonly receive: () => Promise<ReadonlyArray<Uint8Array>> }) => Effect.promise(() => socket.receive())
