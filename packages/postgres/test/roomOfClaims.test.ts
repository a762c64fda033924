/** Room that a first claim took, which its charge says itself: `reserve`, `release`, a late payment and a run's plan treat it as any other. */
import { assert, layer } from "@effect/vitest"
import { type BillingPeriod, type ChargeOutcome, type ChargeRequest, type Currency, Declined, Ledger, RunLedger, SpendCap, Succeeded } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { PgLedger } from "../src/PgLedger.ts"
import { PgRunLedger } from "../src/PgRunLedger.ts"
import { PgSpendCap } from "../src/PgSpendCap.ts"
import * as TestDatabase from "../src/TestDatabase.ts"

const period = "2026-11" as BillingPeriod
const currency = "usd" as Currency
const idOf = ({ chargeKey }: ChargeRequest) => `one:${chargeKey}`
const common = (request: ChargeRequest) => ({ chargeKey: request.chargeKey, alreadySettled: false, paymentIntentId: idOf(request) })
const declined = (request: ChargeRequest) => new Declined({ ...common(request), code: "card_declined", declineCode: null, adviceCode: null, declinedChargeId: null, detail: "no" })
const paid = (request: ChargeRequest) => new Succeeded({ ...common(request), chargeId: "ch_1", amountReceivedMinor: request.amountMinor })
const wish = ({ amountMinor, chargeKey, namespace }: ChargeRequest, attempt = 1) => ({ namespace, billingPeriod: period, currency, chargeKey, attempt, amountMinor })

/** Charges under a cap of their own, which took their room with their claims. */
const claimed = Effect.fnUntraced(function*(name: string, count = 1, expectedMinor = 1_000_000n) {
  const [ledger, cap] = [yield* Ledger, yield* SpendCap]
  const requests = Array.from({ length: count }, (_, index) => chargeFor(`${name}-${index}`, period, { namespace: name }))
  yield* cap.open({ namespace: name, billingPeriod: period, currency, expectedMinor, headroomPercent: 100 })
  const answers = yield* Effect.forEach(requests, (request) => ledger.claim(request, "w", { room: true, object: { id: idOf(request), paymentMethod: "pm_card_visa" } }), { concurrency: "unbounded" })
  return yield* Effect.forEach(answers, (answer, index) => {
    if (answer._tag !== "Claimed" || answer.hasRoom !== true) return Effect.die(new Error(`${name} has no room`))
    const request = requests[index]!
    const { attempt, lease } = answer.charge
    return Effect.succeed({ request, settle: (outcome: ChargeOutcome) => ledger.settle({ lease, attempt, paymentIntentId: idOf(request), outcome }) })
  })
})
const one = (name: string) => Effect.map(claimed(name), (charges) => charges[0]!)
/** What the cap counts, and what its holders add up to. */
const held = Effect.fnUntraced(function*({ namespace }: ChargeRequest) {
  const sql = yield* SqlClient.SqlClient
  const report = (yield* (yield* SpendCap).report(period)).find((one) => one.namespace === namespace)!
  const [room] = yield* sql.unsafe<{ readonly sum: bigint; readonly count: bigint }>(
    "select coalesce(sum(amount_minor), 0)::bigint as sum, count(*) as count from purser.held_room where namespace = $1", [namespace])
  assert.deepStrictEqual([report.reservedMinor, report.reservations], [BigInt(room!.sum), Number(room!.count)])
  return Number(report.reservedMinor)
})
const reserved = (requests: ReadonlyArray<ChargeRequest>) =>
  Effect.flatMap(SpendCap, (cap) => Effect.forEach(requests, (request) => Effect.exit(cap.reserve(wish(request))), { concurrency: "unbounded" }))

for (const [name, database] of TestDatabase.layers) {
  layer(Layer.provideMerge(Layer.mergeAll(PgLedger.layer, PgSpendCap.layer, PgRunLedger.layer), database), { timeout: 60_000 })(`room of first claims on ${name}`, (it) => {
    it.effect("is a note of the charge, and no row beside it", () =>
      Effect.gen(function*() {
        const { request } = yield* one("note")
        assert.strictEqual(yield* held(request), 1000)
        const sql = yield* SqlClient.SqlClient
        assert.lengthOf(yield* sql`select 1 from purser.cap_reservations where namespace = 'note'`, 0)
      }))

    it.effect("is not noted where the cap is closed, where there is none and where it is full; the charges are claimed, and ask for it by themselves", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const scopes = ["closed", "none", "full-up", "fits"]
        const open = (namespace: string, expectedMinor: bigint) => cap.open({ namespace, billingPeriod: period, currency, expectedMinor, headroomPercent: 100 })
        yield* open("closed", 1_000_000n)
        yield* cap.close({ namespace: "closed", billingPeriod: period, currency })
        yield* open("full-up", 2999n)
        yield* open("fits", 3000n)
        for (const namespace of scopes) {
          const requests = [1, 2, 3].map((number) => chargeFor(`${namespace}-${number}`, period, { namespace }))
          // A process that has had no trouble yet.
          const answers = yield* Effect.flatMap(Ledger, (ledger) =>
            Effect.forEach(requests, (request) => ledger.claim(request, "w", { room: true }), { concurrency: "unbounded" })).pipe(Effect.provide(Layer.fresh(PgLedger.layer)))
          assert.deepStrictEqual(answers.map((answer) => answer._tag === "Claimed" && answer.hasRoom), requests.map(() => namespace === "fits"), namespace)
          if (namespace !== "none") assert.strictEqual(yield* held(requests[0]!), namespace === "fits" ? 3000 : 0)
        }
      }))

    it.effect("is as that of many where a charge is alone", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const rooms = { "alone-closed": 1000n, "alone-none": undefined, "alone-full": 999n, "alone-fits": 1000n }
        for (const [namespace, expectedMinor] of Object.entries(rooms)) {
          if (expectedMinor !== undefined) yield* cap.open({ namespace, billingPeriod: period, currency, expectedMinor, headroomPercent: 100 })
          if (namespace === "alone-closed") yield* cap.close({ namespace, billingPeriod: period, currency })
          const request = chargeFor(namespace, period, { namespace })
          const answer = yield* Effect.flatMap(Ledger, (ledger) => ledger.claim(request, "w", { room: true })).pipe(Effect.provide(Layer.fresh(PgLedger.layer)))
          assert.deepStrictEqual(answer._tag === "Claimed" && answer.hasRoom, namespace === "alone-fits", namespace)
          if (expectedMinor !== undefined) assert.strictEqual(yield* held(request), namespace === "alone-fits" ? 1000 : 0)
        }
      }))

    it.effect("is asked for by themselves by the charges after some that found none, and then with their claims again", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const claim = (namespace: string, number: number) =>
          Effect.flatMap(Ledger, (ledger) =>
            Effect.map(ledger.claim(chargeFor(`${namespace}-${number}`, period, { namespace }), "w", { room: true }), (answer) => answer._tag === "Claimed" && answer.hasRoom === true))
        yield* cap.open({ namespace: "after", billingPeriod: period, currency, expectedMinor: 1_000_000n, headroomPercent: 100 })
        const had = yield* Effect.gen(function*() {
          const first = [yield* claim("after", 0), yield* claim("nowhere", 0)]
          return [...first, ...yield* Effect.forEach(Array.from({ length: 17 }, (_, index) => index + 1), (number) => claim("after", number))]
        }).pipe(Effect.provide(Layer.fresh(PgLedger.layer)))
        assert.deepStrictEqual(had, [true, false, ...Array.from({ length: 16 }, () => false), true])
      }))

    it.effect("that somebody holds before the claim is not taken a second time", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const request = chargeFor("before", period, { namespace: "before" })
        yield* cap.open({ namespace: "before", billingPeriod: period, currency, expectedMinor: 1_000_000n, headroomPercent: 100 })
        yield* cap.reserve(wish(request))
        const answer = yield* Effect.flatMap(Ledger, (ledger) => ledger.claim(request, "w", { room: true })).pipe(Effect.provide(Layer.fresh(PgLedger.layer)))
        assert.deepStrictEqual(answer._tag === "Claimed" && answer.hasRoom, false)
        yield* cap.reserve(wish(request))
        assert.strictEqual(yield* held(request), 1000)
      }))

    it.effect("that was found to be taken when the cap was opened is not taken a second time, alone and beside others", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        for (const namespace of ["opened-over", "opened-over-some"]) {
          const requests = Array.from({ length: namespace === "opened-over" ? 1 : 3 }, (_, index) => chargeFor(`${namespace}-${index}`, period, { namespace }))
          assert.strictEqual((yield* Effect.exit(cap.reserveByForce(wish(requests[0]!))))._tag, "Failure")
          yield* cap.open({ namespace, billingPeriod: period, currency, expectedMinor: 1_000_000n, headroomPercent: 100 })
          const answers = yield* Effect.flatMap(Ledger, (ledger) =>
            Effect.forEach(requests, (request) => ledger.claim(request, "w", { room: true }), { concurrency: "unbounded" })).pipe(Effect.provide(Layer.fresh(PgLedger.layer)))
          assert.deepStrictEqual(answers.map((answer) => answer._tag === "Claimed" && answer.hasRoom), requests.map(() => false))
          yield* reserved(requests)
          assert.strictEqual(yield* held(requests[0]!), 1000 * requests.length)
        }
      }))

    it.effect("is not taken by a claim that no request makes, alone and beside others, and these and who comes later take theirs", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        yield* cap.open({ namespace: "odd", billingPeriod: period, currency, expectedMinor: 1_000_000n, headroomPercent: 100 })
        const odd: Record<string, (request: ChargeRequest) => Partial<ChargeRequest>> = {
          customer: () => ({ customerId: "a\0b" }),
          "stripe-customer": () => ({ stripeCustomerId: "cus_\0" as ChargeRequest["stripeCustomerId"] }),
          item: () => ({ item: "\0" }),
          key: ({ chargeKey }) => ({ chargeKey: `X${chargeKey.slice(1)}` as ChargeRequest["chargeKey"] }),
          amount: () => ({ amountMinor: 0.5 as ChargeRequest["amountMinor"] })
        }
        let good = 0
        for (const [what, change] of Object.entries(odd)) {
          for (const neighbours of [0, 2]) {
            const requests = Array.from({ length: neighbours + 1 }, (_, index) => chargeFor(`odd-${what}-${neighbours}-${index}`, period, { namespace: "odd" }))
            const answers = yield* Effect.gen(function*() {
              const ledger = yield* Ledger
              const claim = (request: ChargeRequest) => Effect.map(Effect.exit(ledger.claim(request, "w", { room: true })), (exit) => exit._tag === "Success" && exit.value._tag === "Claimed" && exit.value.hasRoom)
              const [request, ...others] = requests as [ChargeRequest, ...Array<ChargeRequest>]
              const first = yield* Effect.forEach([{ ...request, chargeKey: request.chargeKey, ...change(request) }, ...others], claim, { concurrency: "unbounded" })
              return [...first, yield* claim(chargeFor(`odd-${what}-${neighbours}-later`, period, { namespace: "odd" }))]
            }).pipe(Effect.provide(Layer.fresh(PgLedger.layer)))
            good += neighbours + 1
            assert.deepStrictEqual(answers, [false, ...Array.from({ length: neighbours + 1 }, () => true)], `${what} ${neighbours}`)
            assert.strictEqual(yield* held(requests[0]!), 1000 * good)
          }
        }
      }))

    it.effect("is held already where it is asked for again, alone and beside others, also where there is room for no more", () =>
      Effect.gen(function*() {
        const wide = yield* claimed("again", 3)
        const others = [chargeFor("new-1", period, { namespace: "again" }), chargeFor("new-2", period, { namespace: "again" })]
        assert.isTrue((yield* reserved([...wide.map(({ request }) => request), ...others])).every((exit) => exit._tag === "Success"))
        assert.strictEqual(yield* held(wide[0]!.request), 5000)
        const full = yield* claimed("full", 3, 3000n)
        const exits = yield* reserved([full[0]!.request, chargeFor("new", period, { namespace: "full" }), full[1]!.request])
        assert.deepStrictEqual(exits.map(({ _tag }) => _tag), ["Success", "Failure", "Success"])
        assert.strictEqual(yield* held(full[0]!.request), 3000)
      }))

    it.effect("is given back once", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const charges = yield* claimed("back", 3)
        yield* Effect.forEach(charges.slice(1), ({ request }) => cap.release(request.chargeKey, 1), { concurrency: "unbounded" })
        assert.strictEqual(yield* held(charges[0]!.request), 1000)
        yield* Effect.forEach(charges.slice(1), ({ request }) => cap.release(request.chargeKey, 1))
        assert.strictEqual(yield* held(charges[0]!.request), 1000)
        yield* cap.reserve(wish(charges[1]!.request))
        assert.strictEqual(yield* held(charges[0]!.request), 2000)
      }))

    it.effect("belongs to the highest attempt that has asked for it", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const { request } = yield* one("attempts")
        yield* cap.reserve(wish(request, 2))
        yield* cap.reserve(wish(request, 1))
        yield* cap.release(request.chargeKey, 1)
        assert.strictEqual(yield* held(request), 1000)
        yield* cap.release(request.chargeKey, 2)
        assert.strictEqual(yield* held(request), 0)
      }))

    it.effect("stays with what was paid, and a payment that holds it takes no more", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const { request, settle } = yield* one("late")
        yield* settle(declined(request))
        // Of a decline whose room was not given back yet.
        assert.strictEqual((yield* settle(paid(request)))._tag, "Settled")
        assert.strictEqual(yield* held(request), 1000)
        yield* cap.release(request.chargeKey, 1)
        assert.strictEqual(yield* held(request), 1000)
      }))

    it.effect("is taken anew by a payment that comes after it was given back", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const { request, settle } = yield* one("anew")
        yield* settle(declined(request))
        yield* cap.release(request.chargeKey, 1)
        assert.strictEqual(yield* held(request), 0)
        yield* settle(paid(request))
        assert.strictEqual(yield* held(request), 1000)
      }))

    it.effect("keeps its charge among those that a sweep has to release", () =>
      Effect.gen(function*() {
        const [ledger, cap] = [yield* Ledger, yield* SpendCap]
        const { request, settle } = yield* one("swept")
        yield* settle(declined(request))
        const isDue = Effect.map(ledger.releaseDue(1000), (due) => due.some(({ chargeKey }) => chargeKey === request.chargeKey))
        yield* ledger.markReleased(request.chargeKey, 1)
        assert.isTrue(yield* isDue)
        yield* cap.release(request.chargeKey, 1)
        yield* ledger.markReleased(request.chargeKey, 1)
        assert.isFalse(yield* isDue)
      }))

    it.effect("of a later attempt does not keep an earlier one's release open", () =>
      Effect.gen(function*() {
        const [ledger, cap] = [yield* Ledger, yield* SpendCap]
        const { request, settle } = yield* one("later")
        yield* settle(declined(request))
        yield* cap.reserve(wish(request, 2))
        yield* ledger.markReleased(request.chargeKey, 1)
        assert.isFalse((yield* ledger.releaseDue(1000)).some(({ chargeKey }) => chargeKey === request.chargeKey))
        assert.strictEqual(yield* held(request), 1000)
      }))

    it.effect("is no more that a run's plan needs", () =>
      Effect.gen(function*() {
        const charges = yield* claimed("plan", 2)
        const requests = [...charges.map(({ request }) => request), chargeFor("plan-new", period, { namespace: "plan" })]
        const runs = yield* RunLedger
        yield* runs.begin({ runId: "run-held", source: "test" })
        yield* runs.stage("run-held", requests.map((request, index) => ({ line: index + 1, chargeKey: request.chargeKey, request })))
        const [total] = yield* runs.totals("run-held")
        assert.deepStrictEqual([total!.amountMinor, total!.coveredMinor], [3000n, 2000n])
      }))

    it.effect("of planned rows is as that of new ones", () =>
      Effect.gen(function*() {
        const [ledger, cap, runs] = [yield* Ledger, yield* SpendCap, yield* RunLedger]
        const requests = Array.from({ length: 4 }, (_, index) => chargeFor(`planned-${index}`, period, { namespace: "planned" }))
        yield* cap.open({ namespace: "planned", billingPeriod: period, currency, expectedMinor: 1_000_000n, headroomPercent: 100 })
        yield* runs.begin({ runId: "run-planned", source: "test" })
        yield* runs.stage("run-planned", requests.map((request, index) => ({ line: index + 1, chargeKey: request.chargeKey, request })))
        yield* runs.plan("run-planned")
        const claims = Effect.forEach(requests, (request) => ledger.claim(request, "w", { room: true }), { concurrency: "unbounded" })
        assert.deepStrictEqual((yield* claims).map((answer) => answer._tag === "Claimed" && answer.hasRoom), [true, true, true, true])
        assert.strictEqual(yield* held(requests[0]!), 4000)
        yield* reserved(requests)
        assert.strictEqual(yield* held(requests[0]!), 4000)
      }))
  })
}
