import { assert, describe, it } from "@effect/vitest"
import { ZmqRpc } from "@purser/transport-zeromq"
import { Effect, Exit, Fiber, Latch, Layer, Schema, Scope, Stream } from "effect"
import { Rpc, RpcClient, RpcGroup, RpcServer } from "effect/rpc"
import * as zmq from "zeromq"
import { bare, freeAddress } from "./support.ts"

class Group extends RpcGroup.make(
  Rpc.make("echo", { payload: { at: Schema.Date, n: Schema.BigInt }, success: Schema.Struct({ at: Schema.Date, n: Schema.BigInt }), error: Schema.String }),
  Rpc.make("count", { payload: { to: Schema.Int }, success: Schema.Int, error: Schema.String, stream: true }),
  Rpc.make("wait", {})
) {}

const brisk = { pingInterval: "50 millis", silenceMax: "500 millis", socket: { reconnectMs: 10 } } as const
const patient = { ...brisk, silenceMax: "30 seconds" } as const
const start = Effect.fnUntraced(function*(endpoint: string, waiting: Effect.Effect<void> = Effect.never, times: typeof brisk | typeof patient = patient) {
  const scope = yield* Scope.fork(yield* Effect.scope)
  const handlers = Group.toLayer({
    echo: (message) => message.n < 0n ? Effect.fail("negative") : Effect.succeed(message),
    count: ({ to }) => to < 0 ? Stream.concat(Stream.make(1), Stream.fail("negative")) : Stream.range(1, to),
    wait: () => waiting
  })
  yield* Layer.buildWithScope(RpcServer.layer(Group).pipe(Layer.provide(handlers), Layer.provide(ZmqRpc.layerServerProtocol({ ...times, endpoint }))), scope)
  return scope
})
const connect = (endpoint: string, times: typeof brisk | typeof patient = patient) => Effect.flatMap(Layer.build(ZmqRpc.layerClientProtocol({ ...times, endpoint })), (context) => Effect.provide(RpcClient.make(Group), context))

describe("effect/rpc over router-dealer", () => {
  it.live("carries calls, failures and streams of several clients at once", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      yield* start(endpoint)
      const clients = yield* Effect.forEach([1, 2, 3], () => connect(endpoint))
      yield* Effect.forEach(clients, (client) =>
        Effect.gen(function*() {
          const sent = Array.from({ length: 100 }, (_, n) => ({ at: new Date(n), n: BigInt(n) }))
          assert.deepStrictEqual(yield* Effect.forEach(sent, (message) => client.echo(message), { concurrency: "unbounded" }), sent)
          assert.strictEqual(yield* Effect.flip(client.echo({ at: new Date(0), n: -1n })), "negative")
          assert.deepStrictEqual(yield* Stream.runCollect(client.count({ to: 300 })), Array.from({ length: 300 }, (_, n) => n + 1))
          assert.strictEqual(yield* Effect.flip(Stream.runCollect(client.count({ to: -1 }))), "negative")
        }), { concurrency: "unbounded" })
    }), 60_000)

  it.live("interrupts the handler of a call that is given up, and of a client that goes away", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      for (const how of ["interrupted", "closed"] as const) {
        const begun = yield* Latch.make(false)
        const interrupted = yield* Latch.make(false)
        const server = yield* start(endpoint, Effect.onInterrupt(Effect.andThen(begun.open, Effect.never), () => interrupted.open), brisk)
        const scope = yield* Scope.make()
        const client = yield* Scope.provide(connect(endpoint), scope)
        const call = yield* Effect.forkChild(Effect.exit(client.wait()))
        yield* begun.await
        if (how === "interrupted") yield* Fiber.interrupt(call)
        else yield* Scope.close(scope, Exit.void)
        yield* interrupted.await
        yield* Scope.close(scope, Exit.void)
        yield* Scope.close(server, Exit.void)
      }
    }), 60_000)

  it.live("fails calls whose server is silent, and works with the next server", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      const client = yield* connect(endpoint, brisk)
      yield* Effect.scoped(Effect.gen(function*() {
        const silent = yield* bare(() => new zmq.Router({ linger: 0 }))
        yield* Effect.promise(() => silent.bind(endpoint))
        const call = yield* Effect.forkChild(Effect.flip(client.wait()))
        yield* Effect.promise(() => silent.receive())
        assert.strictEqual((yield* Fiber.join(call))._tag, "RpcClientError")
      }))
      yield* start(endpoint)
      const message = { at: new Date(7), n: 7n }
      assert.deepStrictEqual(yield* Effect.retry(client.echo(message), { times: 20 }), message)
    }), 60_000)

  it.live("drops what is no message, and serves the next one", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      yield* start(endpoint)
      const dealer = yield* bare(() => new zmq.Dealer({ linger: 0 }))
      dealer.connect(endpoint)
      for (const text of ["?", "[]", "null", "{}", `{"_tag":7}`]) yield* Effect.promise(() => dealer.send(text))
      yield* Effect.promise(() => dealer.send(`{"_tag":"Ping"}`))
      assert.strictEqual(String((yield* Effect.promise(() => dealer.receive()))[0]), `{"_tag":"Pong"}`)
      const message = { at: new Date(7), n: 7n }
      assert.deepStrictEqual(yield* (yield* connect(endpoint)).echo(message), message)
    }), 60_000)

  it.live("outlives messages that the library dies of, on both sides", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      yield* start(endpoint)
      const dealer = yield* bare(() => new zmq.Dealer({ linger: 0 }))
      dealer.connect(endpoint)
      const client = yield* connect(endpoint)
      const message = { at: new Date(7), n: 7n }
      for (const headers of [5, "abc", [[1, 2]]]) {
        yield* Effect.promise(() => dealer.send(JSON.stringify({ _tag: "Request", id: "3", tag: "echo", payload: { at: "1970-01-01T00:00:00.007Z", n: "7" }, headers })))
        assert.match(String((yield* Effect.promise(() => dealer.receive()))[0]), /"_tag":"(?:Defect|Exit)"/)
        assert.deepStrictEqual(yield* client.echo(message), message)
      }
    }), 60_000)

  it.live("a client that is answered with rubbish hears the next answer", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      const router = yield* bare(() => new zmq.Router({ linger: 0 }))
      yield* Effect.promise(() => router.bind(endpoint))
      const client = yield* connect(endpoint)
      const call = yield* Effect.forkChild(Effect.flip(client.echo({ at: new Date(7), n: 7n })))
      const [peer] = yield* Effect.promise(() => router.receive())
      yield* Effect.promise(() => router.send([peer!, `{"_tag":"Defect"}`]))
      assert.include(String(yield* Fiber.join(call)), "RpcClientError")
      const waits = yield* Effect.forkChild(client.wait())
      let asked: { readonly _tag?: string; readonly id?: string } = {}
      while (asked._tag !== "Request") asked = JSON.parse(String((yield* Effect.promise(() => router.receive()))[1]))
      yield* Effect.promise(() => router.send([peer!, JSON.stringify({ _tag: "Exit", requestId: asked.id, exit: { _tag: "Success", value: null } })]))
      yield* Fiber.join(waits)
    }), 60_000)
})
