/** A store that hangs, and one that is away for long. The proxy's own store is behind a gate that the test holds. */
import { assert, describe, it } from "@effect/vitest"
import { ProxyServer, VaultAdmin, VaultStore, VaultStoreError, VaultStoreUnavailable } from "@purser/spend-cap-proxy"
import { StripeSim } from "@purser/stripe-sim"
import { Context, Effect, Fiber, Latch, Layer } from "effect"
import { TestClock } from "effect/testing"
import { make as timely } from "../src/internal/timely.ts"
import { type Broken, chargeForm, databases, makeVault, paid, proxyLayer, raw, type RawAnswer, used, world } from "./support/world.ts"

const away = new VaultStoreError({ reason: new VaultStoreUnavailable({ operation: "record", detail: "gone" }) })

/** Waits for what must come, however long it takes. */
const until = <E, R>(seen: Effect.Effect<boolean, E, R>): Effect.Effect<void, E, R> =>
  Effect.flatMap(seen, (yes) => yes ? Effect.void : Effect.andThen(Effect.sleep(5), until(seen)))

/** A proxy whose store answers only while the gate is open. */
const gated = Effect.gen(function*() {
  const gate = yield* Latch.make(true)
  const store = yield* VaultStore
  const slow = Layer.succeed(VaultStore, VaultStore.of({
    decide: (wish) => gate.whenOpen(store.decide(wish)),
    record: (outcome) => gate.whenOpen(store.record(outcome))
  }))
  const proxy = Context.get(yield* Layer.build(Layer.provide(Layer.fresh(proxyLayer({ storeTimeout: 500 })), slow)), ProxyServer)
  return { gate, proxy }
})

for (const [name, database] of databases) {
  describe(`a store that hangs, on ${name}`, () => {
    it.live("is a 503 in time, for reading too; what it decides later is not sent, and its room is given back", () =>
      Effect.gen(function*() {
        const { gate, proxy } = yield* gated
        const sim = yield* StripeSim
        const { id, key: vaultKey } = yield* makeVault()
        yield* gate.close
        const got = yield* Effect.all([
          raw(proxy, "/v1/charges", { vaultKey, key: "hangs", body: chargeForm(600) }),
          raw(proxy, "/v1/payment_intents", { vaultKey, key: "hangs-too", body: chargeForm(300) }),
          raw(proxy, "/v1/charges/ch_1", { vaultKey })
        ], { concurrency: "unbounded" })
        assert.deepStrictEqual(got.map(({ json, status }) => [status, json.error.code, json.error.type]), got.map(() => [503, "spend_cap_unavailable", "api_error"]))
        yield* gate.open
        const trail = Effect.map(Effect.flatMap(VaultAdmin, (admin) => admin.log({ vault: id, after: 0, limit: 100 })), (lines) => lines.filter(({ act }) => act === "result"))
        yield* until(Effect.map(trail, (lines) => lines.length >= 3))
        assert.isTrue((yield* trail).every(({ detail, verdict }) => detail === "decided too late, not sent" && verdict === "nothing"))
        assert.deepStrictEqual(yield* sim.requests, [])
        assert.strictEqual((yield* used(id)).heldMinor, 0)
        assert.strictEqual((yield* raw(yield* ProxyServer, "/v1/charges", { vaultKey, key: "hangs", body: chargeForm(600) })).status, 200)
        assert.deepStrictEqual(yield* paid, { payments: 1, amountMinor: 600 })
      }).pipe(Effect.scoped, Effect.provide(world(database))))

    it.live("does not keep an answer of Stripe from its client; the outcome is written when the store answers", () =>
      Effect.gen(function*() {
        const { gate, proxy } = yield* gated
        const sim = yield* StripeSim
        const { id, key: vaultKey } = yield* makeVault()
        yield* sim.faults.add({ match: { path: "/v1/charges" }, action: { kind: "delay", at: "after", delayMs: 600_000 } })
        // A busy machine may itself be too late: such a try was not sent.
        const charge: Effect.Effect<RawAnswer, Broken> = Effect.suspend(() =>
          Effect.flatMap(raw(proxy, "/v1/charges", { vaultKey, key: "k", body: chargeForm(600) }), (got) => got.status === 503 ? charge : Effect.succeed(got)))
        const client = yield* Effect.forkChild(charge)
        yield* until(Effect.map(paid, ({ payments }) => payments === 1))
        yield* gate.close
        yield* sim.faults.release
        assert.strictEqual((yield* Fiber.join(client)).status, 200)
        assert.strictEqual((yield* used(id)).heldMinor, 600)
        yield* gate.open
        yield* until(Effect.map(used(id), ({ paidMinor }) => paidMinor === 600))
      }).pipe(Effect.scoped, Effect.provide(world(database))))
  })
}

describe("a store that is away for a day", () => {
  it.effect("gets the outcome when it is back", () =>
    Effect.gen(function*() {
      let tries = 0
      let open = false
      const store = VaultStore.of({
        decide: () => Effect.fail(away),
        record: () => Effect.suspend(() => {
          tries += 1
          return open ? Effect.void : Effect.fail(away)
        })
      })
      const verdict = {
        ord: 0, verdict: "permitted", code: null, vault_id: "v", seq: 1n, hold_id: 1n, round: 1, cap_minor: 1n, used_minor: 1n, period: "2026-07", vault_currency: "usd",
        first_key: null, first_route: null, request_body: null, answer: null, object_id: null, object_kind: null
      } as const
      yield* timely({ store, decideMs: 5000, waitingMax: 1 }).record({
        verdict, kind: "charge", key: "k", effect: "paid", objectId: "ch_1", intentId: null, amountMinor: 1, status: 200, requestId: null, replayed: false, detail: null, answer: null
      })
      yield* TestClock.adjust("24 hours")
      const before = tries
      assert.isAbove(before, 1000)
      open = true
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(tries, before + 1)
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(tries, before + 1)
    }))
})
