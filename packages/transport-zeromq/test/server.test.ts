import { assert, describe, it } from "@effect/vitest"
import { ChargeClient, ChargeServer } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { ZmqMetrics, ZmqTransport } from "@purser/transport-zeromq"
import { ConfigProvider, Context, Effect, Exit, Fiber, Latch, Layer, Metric, Ref, Schedule, Scope } from "effect"
import { existsSync } from "node:fs"
import { createServer } from "node:net"
import * as zmq from "zeromq"
import { bare, bareRequester, freeAddress, paid, reasonOf, serve, socketPath } from "./support.ts"

const plain = (customer_id: string) =>
  JSON.stringify({ customer_id, billing_period: "2026-07", amount_cents: 1000, stripe_customer_id: "cus_1" })
const errorOf = (frames: ReadonlyArray<string>) => JSON.parse(frames[0]!).error
const clientOf = (endpoint: string) =>
  Effect.map(
    Layer.build(ZmqTransport.layerReqRepClient({ endpoint, sockets: 1, requestTimeout: "500 millis", retry: Schedule.spaced("20 millis") })),
    (context) => Context.get(context, ChargeClient)
  )

describe("an ipc address", () => {
  it.live("is not taken from who serves there, and is free when nobody does, whatever is left of its file", () =>
    Effect.gen(function*() {
      const endpoint = yield* socketPath("charge")
      const socket = { bindWaitMs: 100 }
      const [first, after] = [yield* Scope.make(), yield* Scope.make()]
      yield* Scope.provide(serve({ endpoint, socket }, (request) => Effect.succeed(paid(request))), first)
      const client = yield* clientOf(endpoint)
      yield* client.submit(chargeFor("c_1", "2026-07"))
      const taken = yield* Effect.flip(Effect.scoped(Effect.flatMap(
        Layer.build(ZmqTransport.layerReqRepServer({ endpoint, socket })),
        (context) => Context.get(context, ChargeServer).serve((request) => Effect.succeed(paid(request)))
      )))
      assert.deepStrictEqual([reasonOf(taken), String(taken.message).includes("EADDRINUSE")], ["Closed", true])
      yield* client.submit(chargeFor("c_2", "2026-07"))
      yield* Scope.close(first, Exit.void)
      // A killed process leaves the file as well.
      assert.isTrue(existsSync(endpoint.slice("ipc://".length)))
      yield* Scope.provide(serve({ endpoint }, (request) => Effect.succeed(paid(request))), after)
      // The first socket is closed in the background: it can still take a request with it, which has to be sent again.
      yield* (yield* clientOf(endpoint)).submit(chargeFor("c_3", "2026-07"))
      yield* Scope.close(after, Exit.void)
    }), 60_000)

  it.live("is asked who serves there by connections that do not stay", () =>
    Effect.gen(function*() {
      const endpoint = yield* socketPath("charge")
      const [asked, ended] = [yield* Ref.make(0), yield* Latch.make(false)]
      const owner = createServer((connection) => {
        Effect.runSync(Ref.update(asked, (n) => n + 1))
        connection.on("close", () => owner.getConnections((_, open) => open === 0 && ended.openUnsafe())).resume()
      })
      yield* Effect.acquireRelease(
        Effect.callback<void>((resume) => void owner.listen(endpoint.slice("ipc://".length), () => resume(Effect.void))),
        () => Effect.sync(() => owner.close())
      )
      const server = Context.get(yield* Layer.build(ZmqTransport.layerReqRepServer({ endpoint, socket: { bindWaitMs: 100 } })), ChargeServer)
      assert.strictEqual(reasonOf(yield* Effect.flip(server.serve((request) => Effect.succeed(paid(request))))), "Closed")
      yield* ended.await
      assert.isAbove(yield* Ref.get(asked), 1)
    }), 5_000)
})

it.live("an address that is taken is called so, each time", () =>
  Effect.gen(function*() {
    const endpoint = yield* freeAddress
    const { hostname, port } = new URL(endpoint)
    const owner = createServer()
    yield* Effect.acquireRelease(
      Effect.callback<void>((resume) => void owner.listen(Number(port), hostname, () => resume(Effect.void))),
      () => Effect.sync(() => owner.close())
    )
    const layers = [ZmqTransport.layerReqRepServer, ZmqTransport.layerRouterDealerServer, ZmqTransport.layerPushPullServer]
    const errors = yield* Effect.forEach([...layers, ...layers, ...layers, ...layers], (layer) =>
      Effect.flip(Effect.scoped(Effect.flatMap(Layer.build(layer({ endpoint, socket: { bindWaitMs: 1500 } })), (context) =>
        Context.get(context, ChargeServer).serve((request) => Effect.succeed(paid(request)))))), { concurrency: "unbounded" })
    assert.deepStrictEqual([...new Set(errors.map(({ message }) => message))], [`${endpoint} cannot be used: EADDRINUSE`])
  }), 60_000)

describe("the server", () => {
  it.live("works on as many requests at a time as it may, and refuses beyond what may wait", () =>
    Effect.gen(function*() {
      const address = yield* freeAddress
      const gate = yield* Latch.make(false)
      const two = yield* Latch.make(false)
      const running = yield* Ref.make(0)
      const most = yield* Ref.make(0)
      yield* serve({ endpoint: address, concurrency: 2, waitingMax: 3 }, (request) =>
        Effect.gen(function*() {
          const now = yield* Ref.updateAndGet(running, (n) => n + 1)
          yield* Ref.update(most, (n) => Math.max(n, now))
          if (now === 2) yield* two.open
          yield* gate.await
          yield* Ref.update(running, (n) => n - 1)
          return paid(request)
        }))
      // One DEALER, so that requests arrive in order: two run, three wait, the sixth is refused at once.
      const dealer = yield* bare(() => new zmq.Dealer({ linger: 0 }))
      dealer.connect(address)
      for (let index = 0; index < 6; index++) yield* Effect.promise(() => dealer.send(plain(`c_${index}`)))
      yield* two.await
      const refused = errorOf((yield* Effect.promise(() => dealer.receive())).map(String))
      assert.deepStrictEqual([refused.reason, refused.outcome, refused.retryable], ["Backpressure", "not_charged", true])
      yield* gate.open
      for (let index = 0; index < 5; index++) {
        assert.strictEqual(JSON.parse(String((yield* Effect.promise(() => dealer.receive()))[0])).status, "ok")
      }
      assert.strictEqual(yield* Ref.get(most), 2)
    }), 60_000)

  it.live("answers what it could not finish when its drain time is over", () =>
    Effect.gen(function*() {
      const address = yield* freeAddress
      const begun = yield* Latch.make(false)
      const interrupted = yield* Latch.make(false)
      const server = yield* serve({ endpoint: address, concurrency: 1, waitingMax: 1, drainTimeout: "50 millis" }, () =>
        Effect.onInterrupt(Effect.andThen(begun.open, Effect.never), () => interrupted.open))
      const dealer = yield* bare(() => new zmq.Dealer({ linger: 0 }))
      dealer.connect(address)
      const next = Effect.map(Effect.promise(() => dealer.receive()), (frames) => {
        const { ack_seq, error } = JSON.parse(String(frames[0]))
        return [ack_seq, error.reason, error.outcome, error.retryable]
      })
      // The first runs, the second waits; the third is refused, by which the test knows that the second has arrived.
      for (const seq of [1, 2, 3]) yield* Effect.promise(() => dealer.send(JSON.stringify({ ...JSON.parse(plain(`c_${seq}`)), seq })))
      yield* begun.await
      assert.deepStrictEqual(yield* next, [3, "Backpressure", "not_charged", true])
      yield* Scope.close(server, Exit.void)
      yield* interrupted.await
      assert.sameDeepMembers([yield* next, yield* next], [[1, "PeerLost", "unknown", true], [2, "PeerUnreachable", "not_charged", true]])
    }), 60_000)

  it.live("is not stopped by a handler that cannot be interrupted", () =>
    Effect.gen(function*() {
      const address = yield* freeAddress
      const begun = yield* Latch.make(false)
      const gate = yield* Latch.make(false)
      const server = yield* serve({ endpoint: address, drainTimeout: "20 millis" }, (request) =>
        Effect.uninterruptible(Effect.as(Effect.andThen(begun.open, gate.await), paid(request))))
      const ask = yield* bareRequester(address)
      const asked = yield* Effect.forkChild(ask(plain("hangs")))
      yield* begun.await
      yield* Scope.close(server, Exit.void)
      yield* gate.open
      yield* Fiber.interrupt(asked)
    }), 60_000)

  it.live("counts an answer whose requester is gone, and serves the next one", () =>
    Effect.gen(function*() {
      const address = yield* freeAddress
      const begun = yield* Latch.make(false)
      const gate = yield* Latch.make(false)
      yield* serve({ endpoint: address }, (request) =>
        request.customerId === "leaves" ? Effect.as(Effect.andThen(begun.open, gate.await), paid(request)) : Effect.succeed(paid(request)))
      yield* Effect.scoped(Effect.gen(function*() {
        const ask = yield* bareRequester(address)
        yield* Effect.forkChild(ask(plain("leaves")))
        yield* begun.await
      }))
      const ask = yield* bareRequester(address)
      // The server hears of the disconnect in its own time: only then is the answer unroutable.
      while ((yield* Metric.value(ZmqMetrics.events)).occurrences.get("disconnect") === undefined) yield* Effect.sleep("5 millis")
      yield* ask(plain("stays"))
      yield* gate.open
      while ((yield* Metric.value(ZmqMetrics.unroutableReplies)).count === 0) yield* Effect.sleep("5 millis")
      assert.strictEqual(JSON.parse((yield* ask(plain("stays too")))[0]!).status, "ok")
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map())), 60_000)

  it.live("may connect to where a proxy waits", () =>
    Effect.gen(function*() {
      const address = yield* freeAddress
      const dealer = yield* bare(() => new zmq.Dealer({ linger: 0 }))
      yield* Effect.promise(() => dealer.bind(address))
      yield* serve({ endpoint: `>${address}` }, (request) => Effect.succeed(paid(request)))
      // Two hops of routing ids before the delimiter, as a queue device sends them.
      yield* Effect.promise(() => dealer.send(["client-id", "", plain("c_1")]))
      const [client, delimiter, body] = (yield* Effect.promise(() => dealer.receive())).map(String)
      assert.deepStrictEqual([client, delimiter, JSON.parse(body!).status], ["client-id", "", "ok"])
    }), 60_000)
})

describe("the layers", () => {
  it.live("open nothing until a side is used, and a taken address is a typed error", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      const options = { endpoint, socket: { bindWaitMs: 50 } }
      const servers = yield* Effect.forEach([1, 2], () =>
        Effect.map(Layer.build(ZmqTransport.layerReqRepWith(options)), (context) => Context.get(context, ChargeServer)))
      const gate = yield* Latch.make(false)
      yield* Effect.forkChild(servers[0]!.serve((request) => Effect.as(gate.open, paid(request))))
      yield* (yield* clientOf(endpoint)).submit(chargeFor("c_1", "2026-07"))
      const error = yield* Effect.flip(servers[1]!.serve(() => Effect.never))
      assert.deepStrictEqual([error.reason._tag, error.message], ["Closed", `${endpoint} cannot be used: EADDRINUSE`])
    }), 60_000)

  it.live("refuse an address that other machines reach, unless that is allowed by name", () =>
    Effect.gen(function*() {
      for (const endpoint of ["tcp://0.0.0.0:5555", "tcp://*:5555", "tcp://10.0.0.1:5555", "tcp://[::]:5555", "tcp://localhost.example.com:5555", "tcp://127.0.0.1.example.com:1", "@tcp://*:1"]) {
        assert.strictEqual(reasonOf(yield* Effect.flip(Layer.build(ZmqTransport.layerReqRepWith({ endpoint })))), "Unauthorized", endpoint)
        yield* Layer.build(ZmqTransport.layerReqRepServer({ endpoint, allowPlain: true }))
      }
      for (const endpoint of ["", " , ", "5555", "http://127.0.0.1:1", "tcp://127.0.0.1", "@tcp://127.0.0.1:1"]) {
        assert.strictEqual(reasonOf(yield* Effect.flip(Layer.build(ZmqTransport.layerReqRepClient({ endpoint })))), "Closed", endpoint)
      }
    }), 60_000)

  it.live("take their settings from the configuration, and name what is wrong in it", () =>
    Effect.gen(function*() {
      const build = (env: Record<string, string>) =>
        Layer.build(ZmqTransport.layerReqRep).pipe(Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(env)))
      for (const [key, value] of [["PURSER_REQUEST_TIMEOUT", "soon"], ["PURSER_CLIENT_SOCKETS", "0"], ["PURSER_SERVER_CONCURRENCY", "many"], ["PURSER_ALLOW_PLAIN", "perhaps"]] as const) {
        const error = yield* Effect.flip(build({ [key]: value }))
        assert.include(String(error.message), key)
      }
      const address = yield* freeAddress
      const context = yield* build({ PURSER_ENDPOINT: address, PURSER_REQUEST_TIMEOUT: "60 seconds" })
      yield* Effect.forkChild(Context.get(context, ChargeServer).serve((request) => Effect.succeed(paid(request))))
      const request = chargeFor("c_1", "2026-07")
      assert.deepStrictEqual(yield* Context.get(context, ChargeClient).submit(request), paid(request))
    }), 60_000)
})
