/** What several tests of this package need. */
import { type ChargeOutcome, type ChargeRequest, ChargeServer, type ChargeHandler, type ReadRequest, Succeeded, TransportError } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { type ReqRepServerOptions, ZmqTransport } from "@purser/transport-zeromq"
import { NodeServices } from "@effect/platform-node"
import { Context, Effect, FileSystem, Layer, Metric, Result, Scope } from "effect"
import { randomUUID } from "node:crypto"
import { createServer } from "node:net"
import * as zmq from "zeromq"

/** A port of the loopback that nothing listens on just now. */
export const freePort: Effect.Effect<number> = Effect.callback((resume) => {
  const server = createServer()
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    server.close(() => resume(typeof address === "object" && address !== null ? Effect.succeed(address.port) : Effect.die("no port")))
  })
})

/** An address for one test. */
export const freeAddress = Effect.map(freePort, (port) => `tcp://127.0.0.1:${port}`)

/** The outcome of a handler that takes the money. */
export const paid = (request: ChargeRequest): ChargeOutcome =>
  new Succeeded({
    chargeKey: request.chargeKey,
    alreadySettled: false,
    paymentIntentId: `pi_${request.customerId}`,
    chargeId: `ch_${request.customerId}`,
    amountReceivedMinor: request.amountMinor
  })

/** What a hand-driven worker answers to an item: paid, with an amount by which the test knows the answer. Of no request: another charge. */
export const paidItem = (request: ReadRequest | null | undefined, amountMinor: number): ChargeOutcome =>
  new Succeeded({
    chargeKey: request == null ? chargeFor("another", "2026-07").chargeKey : Result.getOrThrow(request).chargeKey,
    alreadySettled: false,
    paymentIntentId: "pi_1",
    chargeId: "ch_1",
    amountReceivedMinor: amountMinor
  })

/** Serves until the returned scope is closed, or the test ends. */
export const serveOn = Effect.fnUntraced(function*(layer: Layer.Layer<ChargeServer, unknown>, handler: ChargeHandler) {
  const scope = yield* Scope.fork(yield* Effect.scope)
  const server = Context.get(yield* Layer.buildWithScope(layer, scope), ChargeServer)
  yield* Effect.forkIn(server.serve(handler), scope)
  return scope
})

/** Serves REQ/REP. */
export const serve = (options: ReqRepServerOptions, handler: ChargeHandler) => serveOn(ZmqTransport.layerReqRepServer(options), handler)

/** A path for a socket of the file system, in a folder that goes with the test. */
export const socketPath = (name: string) =>
  Effect.map(Effect.flatMap(FileSystem.FileSystem, (fs) => fs.makeTempDirectoryScoped({ prefix: "purser-" })), (folder) => `ipc://${folder}/${name}.sock`).pipe(
    Effect.provide(NodeServices.layer)
  )

/** An address of each network for one test. */
export const networks = {
  inproc: Effect.sync(() => `inproc://${randomUUID()}`),
  ipc: socketPath("charge"),
  tcp: freeAddress
}

/** With metrics of its own. */
export const isolated = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provideService(effect, Metric.MetricRegistry, new Map())

/** How much a counter has counted. */
export const countOf = (metric: Metric.Counter<number>) => Effect.map(Metric.value(metric), ({ count }) => count)

/** A bare socket of the addon, closed with the test. */
export const bare = <S extends zmq.Socket>(make: () => S) => Effect.acquireRelease(Effect.sync(make), (socket) => Effect.sync(() => socket.close()))

/** A bare REQ peer, as a Python process has one; asks with bytes and gives the text of the answer's frames. */
export const bareRequester = Effect.fnUntraced(function*(address: string, options: zmq.SocketOptions<zmq.Request> = {}) {
  const socket = yield* bare(() => new zmq.Request({ linger: 0, ...options }))
  socket.connect(address)
  return (...frames: Array<string | Uint8Array>) =>
    Effect.promise(() => socket.send(frames).then(() => socket.receive())).pipe(Effect.map((reply) => reply.map(String)))
})

/** The reason of an error of the transport; another error ends the test. */
export const reasonOf = (error: { readonly _tag: string }) => error instanceof TransportError ? error.reason._tag : error._tag
