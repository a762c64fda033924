import { AddressInUse, StripeSim } from "@purser/stripe-sim"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { arrived, intentForm, raw, type Sim } from "./support.ts"

const post = (sim: Sim, path: string, body: unknown) =>
  raw(sim, path, { body: JSON.stringify(body), headers: { "content-type": "application/json" } })

describe("the scope", () => {
  it.effect("closes the port, open connections and waiting requests at once", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const sim = yield* Scope.provide(StripeSim.make(), scope)
      yield* sim.faults.add({ action: { kind: "delay", at: "during", delayMs: 3_600_000 } }, {
        match: { nth: 2 },
        action: { kind: "stall" }
      })
      const waiting = yield* Effect.forkChild(Effect.flip(raw(sim, "/v1/payment_intents", { body: intentForm() })))
      yield* arrived(sim, ({ seq }) => seq === 1)
      const stalled = yield* Effect.forkChild(Effect.flip(raw(sim, "/v1/payment_intents", { body: intentForm() })))
      yield* arrived(sim, ({ seq }) => seq === 2)
      yield* Scope.close(scope, Exit.void)
      yield* Fiber.join(waiting)
      yield* Fiber.join(stalled)
      assert.strictEqual((yield* Effect.flip(raw(sim, "/v1/charges"))).code, "ECONNREFUSED")
    }))

  it.effect("a port that is taken is a typed error that a later try may not meet", () =>
    Effect.gen(function*() {
      const first = yield* StripeSim.make()
      const error = yield* Effect.flip(StripeSim.make({ port: first.port }))
      assert.instanceOf(error.reason, AddressInUse)
      assert.isTrue(error.isRetryable)
      assert.include(error.message, `127.0.0.1:${first.port}`)
    }))

  it.effect("two simulators share nothing, not even ids", () =>
    Effect.gen(function*() {
      const one = yield* StripeSim.make()
      const two = yield* StripeSim.make()
      const a = yield* raw(one, "/v1/payment_intents", { body: intentForm(), key: "k" })
      const b = yield* raw(two, "/v1/payment_intents", { body: intentForm(), key: "k" })
      assert.notStrictEqual(a.json.id, b.json.id)
      assert.strictEqual((yield* raw(two, `/v1/payment_intents/${a.json.id}`)).status, 404)
    }))

  it.effect("is a layer too", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim
      assert.strictEqual(sim.url, `http://127.0.0.1:${sim.port}`)
      assert.strictEqual((yield* raw(sim, "/v1/customers/cus_1")).status, 200)
    }).pipe(Effect.provide(StripeSim.layer())))
})

describe("the admin interface", () => {
  it.effect("orders and forgets faults", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const added = yield* post(sim, "/_sim/faults", [
        { match: { path: "/v1/charges", times: "always" }, action: { kind: "serverError", effect: "none", stored: false } },
        { action: { kind: "rateLimited" } }
      ])
      assert.strictEqual(added.status, 200)
      assert.strictEqual((yield* raw(sim, "/v1/customers/cus_1")).status, 429)
      assert.strictEqual((yield* raw(sim, "/v1/charges")).status, 500)
      assert.deepStrictEqual((yield* raw(sim, "/_sim/faults")).json.map(({ seen }: { seen: number }) => seen), [1, 2])
      yield* raw(sim, "/_sim/faults", { method: "DELETE" })
      assert.strictEqual((yield* raw(sim, "/v1/charges")).status, 200)
      const wrong = yield* post(sim, "/_sim/faults", { action: { kind: "earthquake" } })
      assert.strictEqual(wrong.status, 400)
      assert.strictEqual((yield* raw(sim, "/v1/charges")).status, 200)
    }))

  it.effect("moves the clock, and only forward", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const before = (yield* raw(sim, "/_sim/clock")).json.nowMs
      const after = (yield* post(sim, "/_sim/clock/advance", { ms: 90_000_000 })).json.nowMs
      assert.isAtLeast(after - before, 90_000_000)
      assert.strictEqual((yield* post(sim, "/_sim/clock/advance", { ms: -1 })).status, 400)
      assert.isAtLeast(yield* sim.nowMs, after)
    }))

  it.effect("settles what waits", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const body = intentForm("&confirm=true").replace("pm_card_visa", "pm_sim_processing")
      const id = (yield* raw(sim, "/v1/payment_intents", { body })).json.id
      const settled = yield* raw(sim, `/_sim/settle/${id}`, { method: "POST" })
      assert.strictEqual(settled.json.status, "succeeded")
      assert.strictEqual((yield* raw(sim, `/_sim/settle/${id}`, { method: "POST" })).status, 404)
      const other = (yield* raw(sim, "/v1/payment_intents", { body })).json.id
      assert.strictEqual((yield* post(sim, `/_sim/settle/${other}`, { outcome: "failed" })).json.status, "requires_payment_method")
      assert.deepStrictEqual((yield* sim.requests).map(({ paymentsMoved }) => paymentsMoved), [0, 0])
    }))

  it.effect("releases delays and switches idempotency", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      yield* sim.faults.add({ action: { kind: "delay", at: "before", delayMs: 3_600_000 } })
      const waiting = yield* Effect.forkChild(raw(sim, "/v1/customers/cus_1"))
      yield* arrived(sim, ({ seq }) => seq === 1)
      yield* post(sim, "/_sim/faults/release", {})
      assert.strictEqual((yield* Fiber.join(waiting)).status, 200)
      yield* post(sim, "/_sim/idempotency", { enabled: false })
      const one = yield* raw(sim, "/v1/payment_intents", { body: intentForm(), key: "k" })
      const two = yield* raw(sim, "/v1/payment_intents", { body: intentForm(), key: "k" })
      assert.notStrictEqual(one.json.id, two.json.id)
    }))

  it.effect("keeps a journal of what arrived, as long as its limit", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make({ journalLimit: 3 })
      for (let at = 0; at < 8; at++) yield* raw(sim, `/v1/customers/cus_${at}`)
      const entries = (yield* raw(sim, "/_sim/requests")).json
      assert.deepStrictEqual(entries.map(({ path }: { path: string }) => path), [5, 6, 7].map((at) => `/v1/customers/cus_${at}`))
      assert.deepInclude(entries[2], { seq: 8, method: "GET", status: 200, replayed: false, idempotencyKey: null })
      assert.strictEqual((yield* raw(sim, "/_sim/health")).status, 200)
      assert.strictEqual((yield* raw(sim, "/_sim/nothing")).status, 404)
    }))
})
