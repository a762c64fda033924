/**
 * The failure table for the one-call API: exactly once inside the window of the idempotency key, adoption by look-up after
 * it, and the one case that stays open, shown as it is. The simulator's books are the judge; its keys are pruned after a
 * day of the moved clock.
 */
import { assert, describe, it } from "@effect/vitest"
import { type ChargeOutcome, Ledger, type PipelineError } from "@purser/core"
import { ChargePipeline, Sweeper } from "@purser/engine"
import { StripeGateway } from "@purser/stripe"
import { type Fault, StripeSim } from "@purser/stripe-sim"
import { chargeFor } from "@purser/testkit"
import { type Duration, Effect, Exit, Fiber, type Layer } from "effect"
import { databases } from "../src/Long.ts"
import { advance, Crash, openCap, payments, world } from "../src/World.ts"

const request = chargeFor("cust_1", "2026-07")
const key: string = request.chargeKey
const charge = Effect.flatMap(ChargePipeline, (pipeline) => pipeline.charge(request))
const sweep = Effect.flatMap(Sweeper, (sweeper) => sweeper.sweepOnce)
const row = Effect.flatMap(Ledger, (ledger) => ledger.find(request.chargeKey))
const calls = Effect.map(Effect.flatMap(StripeSim, (sim) => sim.requests), (entries) =>
  entries.filter((entry) => entry.method === "POST" && entry.path === "/v1/charges"))
const keys = Effect.map(calls, (entries) => entries.map((entry) => entry.idempotencyKey))
const addFault = (action: Fault["action"], times: number | "always" = 1) =>
  Effect.flatMap(StripeSim, (sim) => sim.faults.add({ match: { method: "POST", path: "/v1/charges", times }, action }))
const tagOf = (effect: Effect.Effect<ChargeOutcome, PipelineError, ChargePipeline>) => Effect.map(effect, (outcome) => outcome._tag)

const paysOnce = Effect.gen(function*() {
  assert.strictEqual(yield* payments(request), 1)
  assert.strictEqual((yield* row)?.state, "succeeded")
  assert.isTrue((yield* charge).alreadySettled)
  assert.strictEqual(yield* payments(request), 1)
})

const crashAt = (place: Parameters<Crash["Service"]["at"]>[0], later: Duration.Input) =>
  Effect.gen(function*() {
    yield* (yield* Crash).at(place)
    assert.isTrue(Exit.hasDies(yield* Effect.exit(charge)))
    yield* advance(later)
    yield* sweep
  })

/** Another program's call of the same account. */
const post = (path: string, body: string, idempotencyKey: string) =>
  Effect.flatMap(StripeSim, ({ url }) =>
    Effect.promise(() =>
      fetch(`${url}${path}`, {
        method: "POST",
        headers: { authorization: "Bearer sk_test_other", "content-type": "application/x-www-form-urlencoded", "idempotency-key": idempotencyKey },
        body
      })))

for (const [name, database] of databases) {
  describe(`charges gateway on ${name}`, () => {
    const live = (title: string, test: Effect.Effect<void, unknown, Layer.Success<ReturnType<typeof world>>>) =>
      it.live(title, () => Effect.andThen(openCap(request), test).pipe(Effect.provide(world(database, {}, StripeGateway.layerChargesWith))))

    live("one call, under the charge key itself", Effect.gen(function*() {
      const outcome = yield* charge
      assert.strictEqual(outcome._tag, "Succeeded")
      assert.match(outcome._tag === "Succeeded" ? outcome.chargeId ?? "" : "", /^ch_/)
      assert.deepStrictEqual(yield* keys, [key])
      assert.strictEqual((yield* (yield* StripeSim).requests).length, 1)
      yield* paysOnce
    }))

    for (const place of ["after-claim", "after-reserve", "before-create", "after-create", "after-attach", "before-confirm", "after-confirm", "after-settle"] as const) {
      live(`killed at ${place}, within the window`, Effect.andThen(crashAt(place, "1 minute"), paysOnce))
      live(`killed at ${place}, days later`, Effect.andThen(crashAt(place, "3 days"), paysOnce))
    }

    live("after the window the payment is adopted by its metadata, and nothing is sent", Effect.gen(function*() {
      yield* crashAt("after-confirm", "3 days")
      assert.strictEqual((yield* calls).length, 1)
      yield* paysOnce
    }))

    const faults: ReadonlyArray<readonly [string, Fault["action"]]> = [
      ["lost on the way out", { kind: "reset", at: "before" }],
      ["reset after it was carried out", { kind: "reset", at: "after" }],
      ["carried out, the answer cut off", { kind: "truncate" }],
      ["a stored 500, paid", { kind: "serverError", effect: "done", stored: true }],
      ["an unstored 500, nothing paid", { kind: "serverError", effect: "none", stored: false }],
      ["a 502 page, paid", { kind: "badGateway", effect: "done" }],
      ["JSON without an error, paid", { kind: "foreignJson", status: 500, effect: "done" }],
      ["409", { kind: "keyInUse" }],
      ["429", { kind: "rateLimited" }],
      ["lock_timeout", { kind: "lockTimeout" }]
    ]
    for (const [title, action] of faults) {
      live(title, Effect.gen(function*() {
        yield* addFault(action)
        assert.strictEqual(yield* tagOf(charge), "Succeeded")
        assert.isTrue((yield* keys).every((used) => used === key))
        yield* paysOnce
      }))
    }

    live("a stored 500 that paid nothing stays open until the key is forgotten, under no other key", Effect.gen(function*() {
      yield* addFault({ kind: "serverError", effect: "none", stored: true })
      assert.strictEqual((yield* Effect.flip(charge)).outcome, "unknown")
      assert.strictEqual((yield* row)?.state, "attached")
      assert.strictEqual(yield* payments(request), 0)
      yield* advance("25 hours")
      yield* sweep
      assert.isTrue((yield* keys).every((used) => used === key))
      yield* paysOnce
    }))

    live("a stored 500 that Stripe rolls forward within the window", Effect.gen(function*() {
      yield* addFault({ kind: "serverError", effect: "later", stored: true })
      assert.strictEqual((yield* Effect.flip(charge)).outcome, "unknown")
      yield* (yield* StripeSim).rollForward
      yield* advance("1 hour")
      yield* sweep
      yield* paysOnce
    }))

    live("a decline is recorded; by an explicit act the next attempt has a key of its own", Effect.gen(function*() {
      yield* addFault({ kind: "reset", at: "before" })
      const declining = chargeFor("cust_2", "2026-07", { paymentMethod: null, stripeCustomerId: "cus_second_chargeDeclinedInsufficientFunds" })
      const pipeline = yield* ChargePipeline
      const ledger = yield* Ledger
      const outcome = yield* pipeline.charge(declining)
      assert.strictEqual(outcome._tag === "Declined" ? outcome.declineCode : outcome._tag, "insufficient_funds")
      assert.isTrue((yield* pipeline.charge(declining)).alreadySettled)
      assert.strictEqual(yield* ledger.reopen({ chargeKeys: [declining.chargeKey], from: ["declined"], actor: "test", reason: "try again" }), 1)
      assert.strictEqual((yield* pipeline.charge(declining))._tag, "Declined")
      assert.deepStrictEqual([...new Set(yield* keys)], [declining.chargeKey, `${declining.chargeKey}:a2`])
      assert.strictEqual(yield* payments(declining), 0)
    }))

    live("a decline whose answer was lost is found days later, and not tried again", Effect.gen(function*() {
      const declining = chargeFor("cust_2", "2026-07", { paymentMethod: "pm_card_visa_chargeDeclined" })
      const pipeline = yield* ChargePipeline
      yield* (yield* Crash).at("after-confirm")
      yield* Effect.exit(pipeline.charge(declining))
      yield* advance("3 days")
      yield* sweep
      assert.strictEqual((yield* (yield* Ledger).find(declining.chargeKey))?.state, "declined")
      assert.strictEqual((yield* calls).length, 1)
    }))

    live("a customer who was deleted after the payment: the refusal is not believed", Effect.gen(function*() {
      yield* (yield* Crash).holdAt("before-confirm").pipe(Effect.flatMap((held) =>
        Effect.gen(function*() {
          const waiting = yield* Effect.forkChild(charge)
          yield* held.arrived
          const body = `amount=1000&currency=usd&customer=cus_cust_1&source=pm_card_visa&metadata[charge_key]=${key}`
            + "&metadata[customer_id]=cust_1&metadata[billing_period]=2026-07&metadata[attempt]=1"
          yield* post("/v1/charges", body, "another")
          const { url } = yield* StripeSim
          yield* Effect.promise(() => fetch(`${url}/v1/customers/cus_cust_1`, { method: "DELETE", headers: { authorization: "Bearer sk_test_other" } }))
          yield* held.go
          assert.strictEqual((yield* Fiber.join(waiting))._tag, "Succeeded")
        })))
      yield* paysOnce
    }))

    live("a program that used the same key with other parameters stops the charge", Effect.gen(function*() {
      // As the workers of existing fleets call: no metadata, so that nothing but the key tells.
      yield* post("/v1/charges", "amount=1000&currency=usd&customer=cus_cust_1&source=pm_card_visa", key)
      const error = yield* Effect.flip(charge)
      assert.strictEqual(error.reason._tag, "ChargeQuarantined")
      yield* advance("3 days")
      yield* sweep
      assert.strictEqual(yield* payments(request), 0)
      assert.strictEqual((yield* calls).filter((entry) => entry.status === 200).length, 1)
    }))

    live("a worker that stands still before its lease is asked for: whoever took over pays, once", Effect.gen(function*() {
      const held = yield* (yield* Crash).holdAt("after-attach")
      const slow = yield* Effect.forkChild(Effect.exit(charge))
      yield* held.arrived
      yield* advance("5 days")
      yield* sweep
      assert.strictEqual(yield* payments(request), 1)
      yield* held.go
      assert.isTrue(Exit.isFailure(yield* Fiber.join(slow)))
      yield* paysOnce
    }))

    live("a call that is on its way for less than the window: once", Effect.gen(function*() {
      const held = yield* (yield* Crash).holdAt("before-confirm")
      const slow = yield* Effect.forkChild(charge)
      yield* held.arrived
      yield* advance("20 hours")
      yield* sweep
      assert.strictEqual(yield* payments(request), 1)
      yield* held.go
      assert.strictEqual((yield* Fiber.join(slow))._tag, "Succeeded")
      yield* paysOnce
    }))

    live("THE OPEN CASE: a call that is on its way for longer than the window is paid a second time, and found", Effect.gen(function*() {
      const held = yield* (yield* Crash).holdAt("before-confirm")
      const late = yield* Effect.forkChild(charge)
      yield* held.arrived
      yield* advance("2 days")
      yield* sweep
      assert.strictEqual(yield* payments(request), 1)
      yield* advance("2 days")
      yield* held.go
      const error = yield* Effect.flip(Fiber.join(late))
      assert.strictEqual(yield* payments(request), 2)
      assert.strictEqual(error.reason._tag, "ChargeQuarantined")
      assert.match((yield* row)?.quarantine ?? "", /^paid twice: ch_\w+ is recorded, and ch_\w+ was paid too/)
    }))
  })
}
