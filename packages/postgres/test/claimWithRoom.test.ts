/** Room under the cap that is taken in the act of the first claim: what `reserve` would have taken, or nothing. */
import { assert, layer } from "@effect/vitest"
import { type ChargeRequest, Ledger, RunLedger, SpendCap } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { Effect, Layer } from "effect"
import { PgLedger } from "../src/PgLedger.ts"
import { PgRunLedger } from "../src/PgRunLedger.ts"
import { PgSpendCap } from "../src/PgSpendCap.ts"
import * as TestDatabase from "../src/TestDatabase.ts"

const openCap = (request: ChargeRequest, expectedMinor: bigint) =>
  Effect.flatMap(SpendCap, (cap) => cap.open({ ...request, expectedMinor, headroomPercent: 100 }))
const capOf = ({ billingPeriod }: ChargeRequest) =>
  Effect.flatMap(SpendCap, (cap) => Effect.map(cap.report(billingPeriod), ([report]) => [report!.reservedMinor, report!.reservations]))
const wishOf = (request: ChargeRequest) => ({ ...request, chargeKey: request.chargeKey, attempt: 1, amountMinor: request.amountMinor })
const claims = (requests: ReadonlyArray<ChargeRequest>) =>
  Effect.flatMap(Ledger, (ledger) =>
    Effect.forEach(requests, (request) => ledger.claim(request, "w1", { room: true }), { concurrency: "unbounded" }))
const rooms = (requests: ReadonlyArray<ChargeRequest>) =>
  Effect.map(claims(requests), (answers) => answers.map((answer) => answer._tag === "Claimed" ? answer.hasRoom === true : answer._tag))
const many = (name: string, period: string) => Array.from({ length: 20 }, (_, index) => chargeFor(`${name}-${index}`, period))

for (const [name, database] of TestDatabase.layers) {
  const stores = Layer.provideMerge(Layer.mergeAll(PgLedger.layer, PgSpendCap.layer, PgRunLedger.layer), database)
  layer(stores, { timeout: 120_000 })(`room with a claim on ${name}`, (it) => {
    it.effect("is taken by new and by planned charges alike, each once", () =>
      Effect.gen(function*() {
        const requests = many("fits", "2026-01")
        yield* openCap(requests[0]!, 1_000_000n)
        const runs = yield* RunLedger
        yield* runs.begin({ runId: "run-room", source: "test" })
        yield* runs.stage("run-room", requests.slice(0, 10).map((request, line) => ({ line: line + 1, chargeKey: request.chargeKey, request })))
        yield* runs.plan("run-room")
        assert.deepStrictEqual(yield* rooms(requests), requests.map(() => true))
        assert.deepStrictEqual(yield* capOf(requests[0]!), [20_000n, 20])
        const cap = yield* SpendCap
        // Asked for again it takes nothing more, and given back it is gone.
        yield* Effect.forEach(requests, (request) => cap.reserve(wishOf(request)), { concurrency: "unbounded" })
        assert.deepStrictEqual(yield* capOf(requests[0]!), [20_000n, 20])
        assert.deepStrictEqual(yield* rooms(requests), requests.map(() => "InProgress"))
        yield* cap.release(requests[0]!.chargeKey, 1)
        assert.deepStrictEqual(yield* capOf(requests[0]!), [19_000n, 19])
      }))

    it.effect("is not taken where it does not fit, where the cap is closed and where there is none; the charges are claimed", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const tight = many("tight", "2026-02")
        yield* openCap(tight[0]!, 5000n)
        const closed = chargeFor("closed", "2026-03")
        yield* openCap(closed, 1_000_000n)
        yield* cap.close(closed)
        const uncapped = chargeFor("uncapped", "2026-04")
        assert.deepStrictEqual(yield* rooms([...tight, closed, uncapped]), [...tight, closed, uncapped].map(() => false))
        assert.deepStrictEqual([yield* capOf(tight[0]!), yield* capOf(closed)], [[0n, 0], [0n, 0]])
        const taken = yield* Effect.forEach(tight, (request) => Effect.isSuccess(cap.reserve(wishOf(request))), { concurrency: "unbounded" })
        assert.strictEqual(taken.filter((fits) => fits).length, 5)
        const trail = yield* (yield* Ledger).events(tight[0]!.chargeKey)
        assert.deepStrictEqual(trail.map(({ to }) => to), ["claimed"])
      }))

    it.effect("is taken under each of many caps for itself: of every namespace, period and currency in one batch", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const scopes = ["room", "room@acct_2"].flatMap((namespace) => ["2026-08", "2026-09"].flatMap((period) => ["usd", "eur", "jpy"].map((currency) => ({ namespace, period, currency }))))
        const requests = scopes.flatMap(({ currency, namespace, period }, index) =>
          ["a", "b", "c"].map((name) => chargeFor(`${name}-${currency}`, period, { namespace, currency, amountMinor: 100 + index })))
        // Every second cap is too small for what its batch asks for, and beside each stand some that differ in one part of their name and are not.
        const fits = (place: number) => (Math.floor(place / 3) + Math.floor(place / 18)) % 2 === 0
        yield* Effect.forEach(requests.filter((_, place) => place % 3 === 0), (request, index) => openCap(request, fits(index * 3) ? 1_000_000n : 99n))
        assert.deepStrictEqual(yield* rooms(requests), requests.map((_, place) => fits(place)))
        const held = Effect.map(cap.report(), (reports) => requests.filter((_, place) => place % 3 === 0).map(({ billingPeriod, currency, namespace }) =>
          reports.filter((one) => one.namespace === namespace && one.billingPeriod === billingPeriod && one.currency === currency).map((one) => [one.reservedMinor, one.reservations])))
        assert.deepStrictEqual(yield* held, scopes.map((_, index) => [fits(index * 3) ? [BigInt(3 * (100 + index)), 3] : [0n, 0]]))
        yield* Effect.forEach(requests, ({ chargeKey }) => cap.release(chargeKey, 1), { concurrency: "unbounded" })
        assert.deepStrictEqual(yield* held, scopes.map(() => [[0n, 0]]))
      }))

    it.effect("that is held already is not taken twice", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const requests = many("held", "2026-05")
        yield* openCap(requests[0]!, 1_000_000n)
        yield* cap.reserve(wishOf(requests[3]!))
        assert.deepStrictEqual(yield* rooms(requests), requests.map(() => false))
        yield* Effect.forEach(requests, (request) => cap.reserve(wishOf(request)), { concurrency: "unbounded" })
        assert.deepStrictEqual(yield* capOf(requests[0]!), [20_000n, 20])
      }))

    it.effect("is never taken beyond the cap by claims that arrive together", () =>
      Effect.gen(function*() {
        const requests = Array.from({ length: 400 }, (_, index) => chargeFor(`race-${index}`, "2026-06"))
        yield* openCap(requests[0]!, 123_000n)
        const answers = yield* rooms(requests)
        const cap = yield* SpendCap
        yield* Effect.forEach(requests.filter((_, index) => answers[index] !== true), (request) => Effect.exit(cap.reserve(wishOf(request))), { concurrency: "unbounded" })
        assert.deepStrictEqual(yield* capOf(requests[0]!), [123_000n, 123])
      }))
  })
}
