/** Room under the cap of a charge that others have settled meanwhile: it does not stay with what is unpaid, and not leave what is paid. */
import { assert, layer } from "@effect/vitest"
import { type BillingPeriod, type ChargeOutcome, type ChargeRequest, type Currency, Declined, Ledger, Processing, SpendCap, Succeeded } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { StoreClock } from "@purser/testkit/StoreClock"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import * as Writes from "../src/internal/ledgerWrites.ts"
import { bigints, doubles, integers, nullableDoubles, texts } from "../src/internal/params.ts"
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

const forced = ({ chargeKey }: ChargeRequest) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(sql.unsafe<{ readonly reason: string }>("select reason from purser.cap_events where act = 'forced' and charge_key = $1", [chargeKey]), (lines) => lines.map(({ reason }) => reason)))

/** A charge under a cap of its own. */
const alone = Effect.fnUntraced(function*(name: string, expectedMinor = 1_000_000n) {
  const request = chargeFor(name, period, { namespace: name })
  yield* (yield* SpendCap).open({ namespace: name, billingPeriod: period, currency, expectedMinor, headroomPercent: 100 })
  return request
})

/** A charge under a cap of its own that was declined, and holds its room still. */
const refusedHolding = Effect.fnUntraced(function*(name: string) {
  const [ledger, cap] = [yield* Ledger, yield* SpendCap]
  const request = yield* alone(name)
  const { attempt, lease } = yield* attached(request)
  yield* cap.reserve(reservation(request))
  const settle = (outcome: ChargeOutcome) => ledger.settle({ lease, attempt, paymentIntentId: idOf(request), outcome })
  yield* settle(declined(request))
  return { attempt, request, settle }
})

for (const [name, database] of TestDatabase.layers) {
  layer(Layer.mergeAll(PgLedger.layer, PgSpendCap.layer, storeClock).pipe(Layer.provideMerge(database)), { timeout: 60_000 })(`late room on ${name}`, (it) => {
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

    it.effect("that is taken between its release and the note of that is given back by a later sweep", () =>
      Effect.gen(function*() {
        const [ledger, cap] = [yield* Ledger, yield* SpendCap]
        const { attempt, request } = yield* refusedHolding("between")
        yield* cap.release(request.chargeKey, attempt)
        yield* cap.reserve(reservation(request))
        yield* ledger.markReleased(request.chargeKey, attempt)
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
        // Also where it is taken before the first attempt's release is noted.
        yield* cap.reserve(reservation(request, 2))
        yield* ledger.markReleased(request.chargeKey, attempt)
        yield* cap.reserve(reservation(request, 2))
        assert.deepStrictEqual([yield* isDue(request), yield* held(request)], [false, BigInt(request.amountMinor)])
      }))

    it.effect("of a payment is not given back by who had found it unpaid before", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const { attempt, request, settle } = yield* refusedHolding("paid-late")
        yield* settle(paid(request))
        yield* cap.reserveByForce(reservation(request))
        yield* cap.release(request.chargeKey, attempt)
        assert.strictEqual(yield* held(request), BigInt(request.amountMinor))
      }))

    it.effect("of a payment that comes after its decline is taken in the act that records it, once", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const { attempt, request, settle } = yield* refusedHolding("recorded-late")
        yield* cap.release(request.chargeKey, attempt)
        assert.strictEqual(yield* held(request), 0n)
        assert.deepInclude(yield* settle(paid(request)), { _tag: "Settled", late: true })
        assert.deepStrictEqual([yield* held(request), yield* forced(request)], [BigInt(request.amountMinor), []])
        assert.strictEqual((yield* settle(paid(request)))._tag, "Recorded")
        assert.strictEqual(yield* cap.reserveByForce(reservation(request)), 0n)
        assert.strictEqual(yield* held(request), BigInt(request.amountMinor))
      }))

    it.effect("of an adopted payment is taken in the act that records it, also over the cap, which is noted", () =>
      Effect.gen(function*() {
        const [ledger, cap] = [yield* Ledger, yield* SpendCap]
        const request = yield* alone("adopted", 300n)
        const adopted = yield* ledger.adopt({ request, worker: "w1", paymentIntentId: idOf(request), paymentMethod: "pm_card_visa" })
        assert.strictEqual(yield* held(request), 0n)
        assert.strictEqual((yield* ledger.settle({ lease: adopted!.lease, attempt: 1, paymentIntentId: idOf(request), outcome: paid(request) }))._tag, "Settled")
        assert.deepStrictEqual([yield* held(request), yield* forced(request)], [BigInt(request.amountMinor), [`${request.amountMinor - 300} over the cap: the money had moved`]])
        assert.strictEqual(yield* cap.reserveByForce(reservation(request)), BigInt(request.amountMinor - 300))
        assert.strictEqual((yield* forced(request)).length, 1)
      }))

    it.effect("of a payment that is found at another attempt, which took none, is taken in the act that records it", () =>
      Effect.gen(function*() {
        const [ledger, cap] = [yield* Ledger, yield* SpendCap]
        const { attempt, request } = yield* refusedHolding("another-attempt")
        yield* cap.release(request.chargeKey, attempt)
        yield* ledger.markReleased(request.chargeKey, attempt)
        yield* ledger.reopen({ chargeKeys: [request.chargeKey], from: ["declined"], actor: "ada", reason: "again" })
        const again = yield* ledger.claim(request, "w2")
        if (again._tag !== "Claimed") return assert.fail(again._tag)
        const recorded = yield* ledger.settle({ lease: again.charge.lease, attempt: again.charge.attempt, paymentIntentId: idOf(request), outcome: paid(request) })
        assert.deepStrictEqual([recorded._tag, yield* held(request)], ["Settled", BigInt(request.amountMinor)])
      }))

    it.effect("of payments that one statement records is noted for those that go over the cap", () =>
      Effect.gen(function*() {
        const requests = [yield* alone("overrun", 2500n), ...["second", "third"].map((customer) => chargeFor(customer, period, { namespace: "overrun" }))]
          .toSorted((a, b) => a.chargeKey < b.chargeKey ? -1 : 1)
        const charges = yield* Effect.forEach(requests, attached)
        const sql = yield* SqlClient.SqlClient
        const each = <A>(of: A) => requests.map(() => of)
        const nulls = texts(each(null))
        yield* sql.unsafe(Writes.settle, [
          texts(requests.map(({ chargeKey }) => chargeKey)), texts(each("w1")), bigints(charges.map(({ lease }) => lease.epoch)), integers(each(1)), texts(requests.map(idOf)),
          texts(each("succeeded")), texts(requests.map(idOf)), nulls, bigints(requests.map(({ amountMinor }) => amountMinor)), nulls, nulls, nulls, doubles(each(0)), nulls, nulls, nullableDoubles(each(null))
        ])
        const notes = yield* Effect.forEach(requests, forced)
        assert.deepStrictEqual([yield* held(requests[0]!), notes], [3000n, [[], [], ["500 over the cap: the money had moved"]]])
      }))

    it.effect("of a payment is its own, whatever else one statement settles under the same cap", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const late = yield* alone("beside")
        const refused = chargeFor("refused", period, { namespace: "beside" })
        const charges = [yield* attached(late), yield* attached(refused)]
        yield* ledger.settle({ lease: charges[0]!.lease, attempt: 1, paymentIntentId: idOf(late), outcome: declined(late) })
        // Payments are tried as such first, so that calls of the ledger would hardly be one statement.
        const sql = yield* SqlClient.SqlClient
        const requests = [late, refused]
        const nulls = texts([null, null])
        yield* sql.unsafe(Writes.settle, [
          texts(requests.map(({ chargeKey }) => chargeKey)), texts(["w1", "w1"]), bigints(charges.map(({ lease }) => lease.epoch)), integers([1, 1]), texts(requests.map(idOf)),
          texts(["succeeded", "declined"]), texts(requests.map(idOf)), nulls, bigints([late.amountMinor, null]), nulls, nulls, nulls, doubles([0, 0]), nulls, nulls, nullableDoubles([null, null])
        ])
        assert.deepStrictEqual([yield* held(late), (yield* ledger.find(refused.chargeKey))?.state], [BigInt(late.amountMinor), "declined"])
      }))

    it.effect("of a payment that holds it already is not taken again, and without a cap there is none", () =>
      Effect.gen(function*() {
        const [ledger, cap] = [yield* Ledger, yield* SpendCap]
        const request = yield* alone("held")
        const pending = yield* attached(request)
        yield* cap.reserve(reservation(request))
        const settle = ({ attempt, lease }: typeof pending, of: ChargeRequest, outcome: ChargeOutcome) =>
          Effect.map(ledger.settle({ lease, attempt, paymentIntentId: idOf(of), outcome, pollAfterMs: 1000 }), ({ _tag }) => _tag)
        assert.strictEqual(yield* settle(pending, request, new Processing({ ...common(request) })), "Settled")
        assert.strictEqual(yield* settle(pending, request, paid(request)), "Settled")
        assert.deepStrictEqual([yield* held(request), yield* forced(request)], [BigInt(request.amountMinor), []])
        const uncapped = chargeFor("uncapped", period, { namespace: "uncapped" })
        const free = yield* attached(uncapped)
        assert.strictEqual(yield* settle(free, uncapped, new Processing({ ...common(uncapped) })), "Settled")
        assert.strictEqual(yield* settle(free, uncapped, paid(uncapped)), "Settled")
        const error = yield* Effect.flip(cap.reserve(reservation(uncapped)))
        assert.strictEqual(error.reason._tag, "CapMissing")
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
