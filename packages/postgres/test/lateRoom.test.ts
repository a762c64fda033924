/** Room under the cap of a charge that others have settled meanwhile: it does not stay with what is unpaid, and not leave what is paid. */
import { assert, layer } from "@effect/vitest"
import { type BillingPeriod, type ChargeRequest, type Currency, Declined, Ledger, SpendCap, Succeeded } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { StoreClock } from "@purser/testkit/StoreClock"
import { Effect, Layer } from "effect"
import { PgLedger } from "../src/PgLedger.ts"
import { PgSpendCap } from "../src/PgSpendCap.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { storeClock } from "./support/storeClock.ts"

const period = "2026-11" as BillingPeriod
const currency = "usd" as Currency

const attached = Effect.fnUntraced(function*(request: ChargeRequest) {
  const ledger = yield* Ledger
  const answer = yield* ledger.claim(request, "w1")
  if (answer._tag !== "Claimed") return yield* Effect.die(new Error(`expected Claimed, got ${answer._tag}`))
  const { charge } = answer
  yield* ledger.attach({ lease: charge.lease, generation: charge.generation, paymentIntentId: idOf(request), paymentMethod: "pm_card_visa" })
  return charge
})
const idOf = ({ chargeKey }: ChargeRequest) => `pi_${chargeKey.slice(0, 8)}`
const common = (request: ChargeRequest) => ({ chargeKey: request.chargeKey, alreadySettled: false, paymentIntentId: idOf(request) })
const declined = (request: ChargeRequest) => new Declined({ ...common(request), code: "card_declined", declineCode: null, adviceCode: null, declinedChargeId: null, detail: "no" })
const paid = (request: ChargeRequest) => new Succeeded({ ...common(request), chargeId: "ch_1", amountReceivedMinor: request.amountMinor })
const reservation = ({ amountMinor, chargeKey, namespace }: ChargeRequest, attempt = 1) => ({ namespace, billingPeriod: period, currency, chargeKey, attempt, amountMinor })
const isDue = (request: ChargeRequest) => Effect.flatMap(Ledger, (ledger) => Effect.map(ledger.releaseDue(1000), (due) => due.some(({ chargeKey }) => chargeKey === request.chargeKey)))
const held = ({ namespace }: ChargeRequest) => Effect.flatMap(SpendCap, (cap) => Effect.map(cap.report(), (caps) => caps.find((one) => one.namespace === namespace)?.reservedMinor))

/** A charge under a cap of its own. */
const alone = Effect.fnUntraced(function*(name: string) {
  const request = chargeFor(name, period, { namespace: name })
  yield* (yield* SpendCap).open({ namespace: name, billingPeriod: period, currency, expectedMinor: 1_000_000n, headroomPercent: 100 })
  return request
})

for (const [name, database] of TestDatabase.layers) {
  layer(Layer.mergeAll(PgLedger.layer, PgSpendCap.layer, storeClock).pipe(Layer.provide(database)), { timeout: 60_000 })(`late room on ${name}`, (it) => {
    it.effect("that is taken after the charge was settled unpaid is given back by a sweep, though whoever took it is gone", () =>
      Effect.gen(function*() {
        const [ledger, cap] = [yield* Ledger, yield* SpendCap]
        const request = yield* alone("taken-late")
        const { attempt, lease } = yield* attached(request)
        assert.isFalse(yield* isDue(request))
        yield* ledger.settle({ lease, attempt, paymentIntentId: idOf(request), outcome: declined(request) })
        yield* cap.release(request.chargeKey, attempt)
        yield* ledger.markReleased(request.chargeKey, attempt)
        assert.isFalse(yield* isDue(request))
        yield* cap.reserve(reservation(request))
        assert.deepStrictEqual([yield* isDue(request), yield* held(request)], [true, BigInt(request.amountMinor)])
        yield* cap.release(request.chargeKey, attempt)
        yield* ledger.markReleased(request.chargeKey, attempt)
        assert.deepStrictEqual([yield* isDue(request), yield* held(request)], [false, 0n])
      }))

    it.effect("for the next attempt is kept until that is begun", () =>
      Effect.gen(function*() {
        const [ledger, cap] = [yield* Ledger, yield* SpendCap]
        const request = yield* alone("next-attempt")
        const { attempt, lease } = yield* attached(request)
        yield* ledger.settle({ lease, attempt, paymentIntentId: idOf(request), outcome: declined(request) })
        yield* cap.release(request.chargeKey, attempt)
        yield* ledger.markReleased(request.chargeKey, attempt)
        yield* cap.reserve(reservation(request, 2))
        assert.isFalse(yield* isDue(request))
      }))

    it.effect("of a payment is not given back by who had found it unpaid before", () =>
      Effect.gen(function*() {
        const [ledger, cap] = [yield* Ledger, yield* SpendCap]
        const request = yield* alone("paid-late")
        const { attempt, lease } = yield* attached(request)
        yield* cap.reserve(reservation(request))
        yield* ledger.settle({ lease, attempt, paymentIntentId: idOf(request), outcome: declined(request) })
        yield* ledger.settle({ lease, attempt, paymentIntentId: idOf(request), outcome: paid(request) })
        yield* cap.reserveByForce(reservation(request))
        yield* cap.release(request.chargeKey, attempt)
        assert.strictEqual(yield* held(request), BigInt(request.amountMinor))
      }))

    it.effect("of a charge in work makes no work for a sweep", () =>
      Effect.gen(function*() {
        const request = yield* alone("in-work")
        yield* attached(request)
        yield* (yield* SpendCap).reserve(reservation(request))
        yield* StoreClock.advance(600_000)
        assert.isFalse(yield* isDue(request))
      }))
  })
}
