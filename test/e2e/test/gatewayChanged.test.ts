/**
 * Another gateway is named while a charge is open: the charge goes on in its own way. What was begun in one call, whose key alone
 * stands between a repeat and a second payment, keeps that key and that caution.
 */
import { assert, describe, it } from "@effect/vitest"
import { Ledger, SpendCap } from "@purser/core"
import { ChargePipeline } from "@purser/engine"
import { type GatewayName, StripeGateway } from "@purser/stripe"
import { StripeSim } from "@purser/stripe-sim"
import { chargeFor } from "@purser/testkit"
import { Context, Effect, Layer } from "effect"
import { openCap, payments, pipelineOn } from "../src/World.ts"

const request = chargeFor("cust_1", "2026-07")

/** What the ledger is asked before a call for money. */
class Asked extends Context.Service<Asked, {
  /** Whether the lease is still ours, by the ledger. */
  isOurs: boolean
  times: number
}>()("@purser/test-e2e/gatewayChanged/Asked") {}

const ledger = Layer.effect(Ledger, Effect.gen(function*() {
  const memory = yield* Ledger
  const asked = yield* Asked
  return Ledger.of({
    ...memory,
    extend: (lease) => Effect.suspend(() => {
      asked.times += 1
      return asked.isOurs ? memory.extend(lease) : Effect.succeed(false)
    })
  })
})).pipe(Layer.provide(Ledger.layerMemory), Layer.provideMerge(Layer.sync(Asked, () => ({ isOurs: true, times: 0 }))))

const stores = Layer.mergeAll(ledger, SpendCap.layerMemory, StripeSim.layer())
/** One charge by a process that names this gateway. */
const chargeBy = (name: GatewayName) =>
  Effect.flatMap(ChargePipeline, (pipeline) => pipeline.charge(request)).pipe(Effect.provide(pipelineOn(StripeGateway.layerNamed(name))))
const posts = Effect.map(Effect.flatMap(StripeSim, (sim) => sim.requests), (entries) =>
  entries.filter(({ method }) => method === "POST").map(({ idempotencyKey, path }) => `${path} ${idempotencyKey}`))
const oneCall = `/v1/charges ${request.chargeKey}`

/** Begun under `charges`, where Stripe keeps a 500 under the charge's key; answers how many calls that took. */
const begunAndStored = Effect.gen(function*() {
  yield* openCap(request)
  yield* (yield* StripeSim).faults.add({ match: { path: "/v1/charges", method: "POST" }, action: { kind: "serverError", effect: "none", stored: true } })
  assert.strictEqual((yield* Effect.flip(chargeBy("charges"))).outcome, "unknown")
  return (yield* posts).length
})

describe("a charge that was begun under `charges`", () => {
  for (const name of ["payment_intents", "invoices"] as const) {
    it.live(`and got a stored 500 is paid once under its own key, with ${name} named since`, () =>
      Effect.gen(function*() {
        const asked = yield* Asked
        const sim = yield* StripeSim
        const before = yield* begunAndStored
        assert.strictEqual((yield* Effect.flip(chargeBy(name))).outcome, "unknown")
        assert.isAbove((yield* posts).length, before)
        assert.strictEqual(asked.times, (yield* posts).length, "the ledger is asked before each call")
        assert.strictEqual(yield* payments(request), 0)
        yield* sim.advanceClock("25 hours")
        assert.strictEqual((yield* chargeBy(name))._tag, "Succeeded")
        assert.deepStrictEqual([...new Set(yield* posts)], [oneCall])
        assert.strictEqual(yield* payments(request), 1)
      }).pipe(Effect.provide(stores)))

    it.live(`and is taken over by another meanwhile is left to them, however fresh the lease is by our clock, with ${name} named since`, () =>
      Effect.gen(function*() {
        const asked = yield* Asked
        const before = yield* begunAndStored
        asked.isOurs = false
        assert.strictEqual((yield* Effect.flip(chargeBy(name))).reason._tag, "LeaseLost")
        assert.strictEqual((yield* posts).length, before)
      }).pipe(Effect.provide(stores)))
  }

  it.live("and whose key another program has used stops, with payment_intents named since", () =>
    Effect.gen(function*() {
      const { faults, send } = yield* StripeSim
      yield* openCap(request)
      yield* faults.add({ match: { path: "/v1/charges", method: "POST", times: 4 }, action: { kind: "reset", at: "before" } })
      assert.strictEqual((yield* Effect.flip(chargeBy("charges"))).outcome, "unknown")
      yield* send({
        method: "POST", path: "/v1/charges", body: "amount=700&currency=usd&customer=cus_cust_1&source=pm_card_visa",
        headers: { authorization: "Bearer sk_test_other", "content-type": "application/x-www-form-urlencoded", "idempotency-key": request.chargeKey }
      })
      assert.strictEqual((yield* Effect.flip(chargeBy("payment_intents"))).reason._tag, "ChargeQuarantined")
      assert.strictEqual(yield* payments(request), 0)
    }).pipe(Effect.provide(stores)))
})

describe("a charge that was begun under `payment_intents`", () => {
  it.live("and got a stored 500 is paid once by its object, under a second key, with charges named since", () =>
    Effect.gen(function*() {
      yield* openCap(request)
      yield* (yield* StripeSim).faults.add(
        { match: { path: "/v1/payment_intents/*/confirm" }, action: { kind: "serverError", effect: "none", stored: true } },
        { match: { path: "/v1/payment_intents/*/confirm", nth: 2, times: 3 }, action: { kind: "reset", at: "before" } }
      )
      assert.strictEqual((yield* Effect.flip(chargeBy("payment_intents"))).outcome, "unknown")
      assert.strictEqual((yield* chargeBy("charges"))._tag, "Succeeded")
      assert.isTrue((yield* posts).every((post) => post.startsWith("/v1/payment_intents")))
      assert.strictEqual(yield* payments(request), 1)
    }).pipe(Effect.provide(stores)))
})
