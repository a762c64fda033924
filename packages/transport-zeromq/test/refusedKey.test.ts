import { assert, describe, it } from "@effect/vitest"
import { ChargeClient } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { allowKeys, generateKeyPair, parseEndpoint, ZmqTransport } from "@purser/transport-zeromq"
import { Context, Effect, Layer, Logger, Result, Schedule } from "effect"
import { freeAddress, paid, reasonOf, serveOn } from "./support.ts"

describe("a client whose key is refused", () => {
  it.live("is told so, once for each address, whatever attempts it makes", () =>
    Effect.gen(function*() {
      const [fleet, alice, mallory] = [yield* generateKeyPair, yield* generateKeyPair, yield* generateKeyPair]
      const endpoint = yield* freeAddress
      yield* serveOn(ZmqTransport.layerReqRepServer({ endpoint, socket: { curve: { own: fleet, clients: allowKeys({ alice: alice.publicKey }) } } }), (request) => Effect.succeed(paid(request)))
      const told: Array<string> = []
      const logger = Logger.make(({ message }) => void told.push(String(message)))
      const ask = (curve: { readonly curve?: { readonly own: typeof mallory; readonly serverKey: typeof fleet.publicKey } }) =>
        Effect.gen(function*() {
          const context = yield* Layer.build(ZmqTransport.layerReqRepClient({ endpoint, socket: { ...curve, reconnectMs: 20 }, requestTimeout: "400 millis", retry: Schedule.recurs(2) }))
          return yield* Effect.flip(Context.get(context, ChargeClient).submit(chargeFor("m", "2026-07")))
        }).pipe(Effect.scoped, Effect.provide(Logger.layer([logger])))
      const error = yield* ask({ curve: { own: mallory, serverKey: fleet.publicKey } })
      assert.deepStrictEqual([reasonOf(error), error.outcome], ["Unauthorized", "not_charged"])
      const about = () => told.filter((text) => text.includes(`${endpoint} does not let this side's key in`))
      yield* Effect.repeat(Effect.sync(() => about().length), { until: (count) => count >= 1, schedule: Schedule.spaced("10 millis") })
      assert.strictEqual(about().length, 1)
    }), 60_000)
})

const patterns = {
  "req-rep": [ZmqTransport.layerReqRepClient, ZmqTransport.layerReqRepServer],
  "router-dealer": [ZmqTransport.layerRouterDealerClient, ZmqTransport.layerRouterDealerServer],
  "push-pull": [ZmqTransport.layerPushPullClient, ZmqTransport.layerPushPullServer]
} as const

describe.each(Object.entries(patterns))("a client of %s whose key is let in later", (_, [client, server]) => {
  it.live("is served from then on, and nothing that was refused arrives after all", () =>
    Effect.gen(function*() {
      const [fleet, alice, bob] = [yield* generateKeyPair, yield* generateKeyPair, yield* generateKeyPair]
      const endpoint = yield* freeAddress
      const listed = new Map<string, string>([[alice.publicKey, "alice"]])
      const served: Array<string> = []
      yield* serveOn(server({ endpoint, socket: { curve: { own: fleet, clients: { names: () => listed, refresh: Effect.sync(() => listed) } } } }), (request) =>
        Effect.sync(() => {
          served.push(request.customerId)
          return paid(request)
        }))
      const context = yield* Layer.build(client({ endpoint, socket: { curve: { own: bob, serverKey: fleet.publicKey }, reconnectMs: 20 }, requestTimeout: "10 seconds", retry: Schedule.recurs(1) }))
      const { submit } = Context.get(context, ChargeClient)
      const refused = yield* Effect.all([1, 2, 3].map((n) => Effect.flip(submit(chargeFor(`refused_${n}`, "2026-07")))), { concurrency: "unbounded" })
      assert.deepStrictEqual(refused.map((error) => [reasonOf(error), error.outcome, error.chargeKey !== null]), Array.from({ length: 3 }, () => ["Unauthorized", "not_charged", true]))
      listed.set(bob.publicKey, "bob")
      assert.strictEqual((yield* submit(chargeFor("later", "2026-07")))._tag, "Succeeded")
      assert.deepStrictEqual(served, ["later"])
    }), 60_000)

  it.live("is served by the attempt that comes after", () =>
    Effect.gen(function*() {
      const [fleet, bob] = [yield* generateKeyPair, yield* generateKeyPair]
      const endpoint = yield* freeAddress
      const listed = new Map<string, string>()
      let asked = 0
      // Read at each handshake: the operator is slower than the first attempt.
      const refresh = Effect.sync(() => ++asked > 1 ? listed.set(bob.publicKey, "bob") : listed)
      yield* serveOn(server({ endpoint, socket: { curve: { own: fleet, clients: { names: () => listed, refresh } } } }), (request) => Effect.succeed(paid(request)))
      const context = yield* Layer.build(client({ endpoint, socket: { curve: { own: bob, serverKey: fleet.publicKey }, reconnectMs: 20 }, requestTimeout: "10 seconds", retry: Schedule.recurs(8) }))
      assert.strictEqual((yield* Context.get(context, ChargeClient).submit(chargeFor("b", "2026-07")))._tag, "Succeeded")
    }), 60_000)
})

describe("a mistyped address", () => {
  it("is not called closed", () => {
    const error = Result.getOrThrow(Result.flip(parseEndpoint("tcp:/127.0.0.1:5555", { attach: "connect", allowPlain: false })))
    assert.strictEqual(error.message, "tcp:/127.0.0.1:5555 cannot be used: expected tcp://host:port, ipc://path or inproc://name")
  })
})
