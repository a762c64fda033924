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
      assert.strictEqual(reasonOf(yield* ask({ curve: { own: mallory, serverKey: fleet.publicKey } })), "RetriesExhausted")
      const about = () => told.filter((text) => text.includes(`${endpoint} does not let this side's key in`))
      yield* Effect.repeat(Effect.sync(() => about().length), { until: (count) => count >= 1, schedule: Schedule.spaced("10 millis") })
      assert.strictEqual(about().length, 1)
    }), 60_000)
})

describe("a mistyped address", () => {
  it("is not called closed", () => {
    const error = Result.getOrThrow(Result.flip(parseEndpoint("tcp:/127.0.0.1:5555", { attach: "connect", allowPlain: false })))
    assert.strictEqual(error.message, "tcp:/127.0.0.1:5555 cannot be used: expected tcp://host:port, ipc://path or inproc://name")
  })
})
