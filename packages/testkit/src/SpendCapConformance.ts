/** What every `SpendCap` must do. Each test has a period of its own, so that one store serves the whole suite. */
import { type BillingPeriod, type CapScope, type ChargeKey, chargeKeyOf, Currency, parsePeriod, SpendCap } from "@purser/core"
import { assert, layer as testLayer } from "@effect/vitest"
import { Effect, type Layer, Result, Schema } from "effect"

const currency = Schema.decodeSync(Currency)

const scopeOf = (period: string, of = "usd", namespace = "cap-suite"): CapScope => ({
  namespace,
  billingPeriod: Result.getOrThrow(parsePeriod(period)) as BillingPeriod,
  currency: currency(of)
})
const keyOf = (scope: CapScope, customerId: string): ChargeKey => chargeKeyOf({ namespace: scope.namespace, customerId, billingPeriod: scope.billingPeriod })
const wish = (scope: CapScope, customerId: string, amountMinor: number, attempt = 1) => ({
  ...scope, chargeKey: keyOf(scope, customerId), attempt, amountMinor
})

const open = (scope: CapScope, expectedMinor: bigint, headroomPercent = 100) =>
  Effect.flatMap(SpendCap, (cap) => cap.open({ ...scope, expectedMinor, headroomPercent }))

const reportOf = (scope: CapScope) =>
  Effect.flatMap(SpendCap, (cap) =>
    Effect.map(cap.report(scope.billingPeriod), (caps) => {
      const found = caps.find((one) => one.namespace === scope.namespace && one.currency === scope.currency)
      return found === undefined ? assert.fail("no such cap") : found
    }))

const held = Effect.fnUntraced(function*(scope: CapScope) {
  const { reservations, reservedMinor } = yield* reportOf(scope)
  return [reservedMinor, reservations] as const
})

/** Caps that differ from each other in one part of their name at the least, in two periods of this test. */
const manyScopes = (periods: ReadonlyArray<string>) =>
  ["cap-suite", "cap-suite@acct_2"].flatMap((namespace) => periods.flatMap((period) => ["usd", "eur", "jpy"].map((of) => scopeOf(period, of, namespace))))
const all = <A, B, E, R>(of: ReadonlyArray<A>, call: (one: A, index: number) => Effect.Effect<B, E, R>) =>
  Effect.all(of.map(call), { concurrency: "unbounded" })

/** Runs the suite against a cap; the layer is built once. */
export const suite = <E>(name: string, layer: Layer.Layer<SpendCap, E>): void =>
  testLayer(layer, { timeout: 120_000 })(`SpendCap: ${name}`, (it) => {
    it.effect("opens with floor(expected × headroom), once", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const scope = scopeOf("2001-01")
        const first = yield* open(scope, 999n, 110)
        assert.deepStrictEqual({ ...first }, {
          ...scope, expectedMinor: 999n, headroomPercent: 110, capMinor: 1098n, reservedMinor: 0n, reservations: 0, closed: false
        })
        assert.deepStrictEqual({ ...(yield* open(scope, 999n, 110)) }, { ...first })
        const wider = yield* Effect.flip(open(scope, 999n, 120))
        assert.deepInclude({ ...wider.reason }, { _tag: "CapAlreadyOpen", capMinor: 1098, requestedMinor: 1198 })
        const error = yield* Effect.flip(open(scope, 1000n, 110))
        assert.deepInclude({ ...error.reason }, { _tag: "CapAlreadyOpen", capMinor: 1098, requestedMinor: 1100 })
        assert.strictEqual((yield* cap.report(scope.billingPeriod)).length, 1)
      }))

    it.effect("opens once for many at the same time", () =>
      Effect.gen(function*() {
        const scope = scopeOf("2001-02")
        const caps = yield* Effect.all(Array.from({ length: 20 }, () => open(scope, 100n)), { concurrency: "unbounded" })
        assert.isTrue(caps.every((cap) => cap.capMinor === 100n))
      }))

    it.effect("takes no charge where no cap is open, not even by force", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const scope = scopeOf("2001-03")
        const input = wish(scope, "a", 1)
        assert.strictEqual((yield* Effect.flip(cap.reserve(input))).reason._tag, "CapMissing")
        const error = yield* Effect.flip(cap.reserveByForce(input))
        assert.deepStrictEqual([error.reason._tag, error.chargeKey], ["CapMissing", input.chargeKey])
        assert.strictEqual((yield* Effect.flip(cap.close(scope))).reason._tag, "CapMissing")
        const raised = cap.raise({ ...scope, expectedMinor: 1n, headroomPercent: 100, actor: "ada", reason: "test" })
        assert.strictEqual((yield* Effect.flip(raised)).reason._tag, "CapMissing")
      }))

    it.effect("takes exactly what fits, to the last unit", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const scope = scopeOf("2001-04")
        yield* open(scope, 100n)
        yield* cap.reserve(wish(scope, "a", 60))
        const error = yield* Effect.flip(cap.reserve(wish(scope, "b", 41)))
        assert.deepInclude({ ...error.reason }, { _tag: "CapExceeded", capMinor: 100, reservedMinor: 60, requestedMinor: 41 })
        yield* cap.reserve(wish(scope, "c", 40))
        assert.deepStrictEqual(yield* held(scope), [100n, 2])
        assert.strictEqual((yield* Effect.flip(cap.reserve(wish(scope, "d", 1)))).reason._tag, "CapExceeded")
      }))

    it.effect("takes of fifty simultaneous wishes as many as fit", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const scope = scopeOf("2001-05")
        yield* open(scope, 3_050n)
        const answers = yield* Effect.forEach(
          Array.from({ length: 50 }, (_, index) => wish(scope, `c${index}`, 100)),
          (input) => Effect.result(cap.reserve(input)),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(answers.filter(Result.isSuccess).length, 30)
        assert.isTrue(answers.every((answer) => Result.isSuccess(answer) || answer.failure.reason._tag === "CapExceeded"))
        assert.deepStrictEqual(yield* held(scope), [3000n, 30])
      }))

    it.effect("refuses one that does not fit and takes a smaller one behind it", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const scope = scopeOf("2001-06")
        yield* open(scope, 100n)
        const answers = yield* Effect.forEach(
          [wish(scope, "a", 80), wish(scope, "b", 30), wish(scope, "c", 20)],
          (input) => Effect.result(cap.reserve(input)),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(answers.map(Result.isSuccess), [true, false, true])
        assert.deepStrictEqual(yield* held(scope), [100n, 2])
      }))

    it.effect("takes room once per charge, however often it is asked", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const scope = scopeOf("2001-07")
        yield* open(scope, 100n)
        yield* Effect.all(Array.from({ length: 20 }, () => cap.reserve(wish(scope, "a", 60))), { concurrency: "unbounded" })
        yield* cap.reserve(wish(scope, "a", 60, 2))
        assert.deepStrictEqual(yield* held(scope), [60n, 1])
      }))

    it.effect("gives room back once, and takes it anew", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const scope = scopeOf("2001-08")
        yield* open(scope, 100n)
        yield* cap.reserve(wish(scope, "a", 60))
        yield* cap.reserve(wish(scope, "b", 40))
        const key = keyOf(scope, "a")
        yield* Effect.all([cap.release(key, 1), cap.release(key, 1)], { concurrency: "unbounded" })
        yield* cap.release(key, 1)
        assert.deepStrictEqual(yield* held(scope), [40n, 1])
        yield* cap.reserve(wish(scope, "a", 60, 2))
        assert.deepStrictEqual(yield* held(scope), [100n, 2])
        yield* cap.release(keyOf(scope, "nobody"), 1)
      }))

    it.effect("keeps room that a later attempt holds from the release of an earlier one", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const scope = scopeOf("2001-09")
        yield* open(scope, 100n)
        yield* cap.reserve(wish(scope, "a", 60, 1))
        yield* cap.reserve(wish(scope, "a", 60, 2))
        yield* cap.release(keyOf(scope, "a"), 1)
        assert.deepStrictEqual(yield* held(scope), [60n, 1])
        yield* cap.reserve(wish(scope, "a", 60, 1))
        yield* cap.release(keyOf(scope, "a"), 1)
        assert.deepStrictEqual(yield* held(scope), [60n, 1])
        yield* cap.release(keyOf(scope, "a"), 2)
        assert.deepStrictEqual(yield* held(scope), [0n, 0])
      }))

    it.effect("takes room by force and tells the overrun", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const scope = scopeOf("2001-10")
        yield* open(scope, 100n)
        assert.strictEqual(yield* cap.reserveByForce(wish(scope, "a", 70)), 0n)
        assert.strictEqual(yield* cap.reserveByForce(wish(scope, "b", 70)), 40n)
        assert.strictEqual(yield* cap.reserveByForce(wish(scope, "b", 70)), 40n)
        assert.deepStrictEqual(yield* held(scope), [140n, 2])
        assert.strictEqual((yield* Effect.flip(cap.reserve(wish(scope, "c", 1)))).reason._tag, "CapExceeded")
        yield* cap.reserve(wish(scope, "a", 70))
      }))

    it.effect("tells no overrun of a charge that held its room when others went over", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const scope = scopeOf("2002-10")
        yield* open(scope, 100n)
        yield* cap.reserve(wish(scope, "a", 90))
        assert.strictEqual(yield* cap.reserveByForce(wish(scope, "b", 20)), 10n)
        assert.strictEqual(yield* cap.reserveByForce(wish(scope, "a", 90)), 0n)
        assert.strictEqual(yield* cap.reserveByForce(wish(scope, "b", 20)), 10n)
        assert.deepStrictEqual(yield* held(scope), [110n, 2])
      }))

    it.effect("begins with payments that were found before it was open, and no others", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const [scope, other] = [scopeOf("2002-11"), scopeOf("2002-12")]
        const found = [wish(scope, "a", 70), wish(scope, "b", 70), wish(scope, "gone", 5), wish(other, "c", 30, 2)]
        for (const one of [...found, ...found]) assert.strictEqual((yield* Effect.flip(cap.reserveByForce(one))).reason._tag, "CapMissing")
        assert.strictEqual((yield* Effect.flip(cap.reserve(wish(scope, "asked", 1)))).reason._tag, "CapMissing")
        yield* cap.release(keyOf(scope, "gone"), 1)
        // Of an attempt before the one that was paid.
        yield* cap.release(keyOf(other, "c"), 1)
        yield* open(scope, 100n)
        yield* open(scope, 100n)
        assert.deepStrictEqual(yield* held(scope), [140n, 2])
        assert.strictEqual((yield* Effect.flip(cap.reserve(wish(scope, "d", 1)))).reason._tag, "CapExceeded")
        const over = [yield* cap.reserveByForce(wish(scope, "a", 70)), yield* cap.reserveByForce(wish(scope, "b", 70))]
        assert.sameMembers(over, [0n, 40n])
        yield* cap.release(keyOf(scope, "a"), 1)
        assert.deepStrictEqual(yield* held(scope), [70n, 1])
        yield* open(other, 100n)
        assert.deepStrictEqual(yield* held(other), [30n, 1])
      }))

    it.effect("takes no new charge once closed; what is taken stays, and force still counts", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const scope = scopeOf("2001-11")
        yield* open(scope, 100n)
        yield* cap.reserve(wish(scope, "a", 10))
        yield* cap.close(scope)
        yield* cap.close(scope)
        assert.strictEqual((yield* Effect.flip(cap.reserve(wish(scope, "b", 10)))).reason._tag, "CapClosed")
        yield* cap.reserve(wish(scope, "a", 10))
        assert.strictEqual(yield* cap.reserveByForce(wish(scope, "c", 10)), 0n)
        const report = yield* reportOf(scope)
        assert.deepStrictEqual([report.closed, report.reservedMinor], [true, 20n])
      }))

    it.effect("is opened again by an act, as it was; one that is open stays as it is", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const scope = scopeOf("2003-01")
        const act = { ...scope, actor: "ada", reason: "a late invoice" }
        assert.strictEqual((yield* Effect.flip(cap.reopen(act))).reason._tag, "CapMissing")
        yield* open(scope, 100n)
        yield* cap.reserve(wish(scope, "reopen-a", 70))
        yield* cap.close(scope)
        const again = yield* cap.reopen(act)
        assert.deepStrictEqual([again.closed, again.capMinor, again.reservedMinor], [false, 100n, 70n])
        yield* cap.reserve(wish(scope, "reopen-b", 30))
        assert.strictEqual((yield* Effect.flip(cap.reserve(wish(scope, "reopen-c", 1)))).reason._tag, "CapExceeded")
        assert.deepStrictEqual({ ...(yield* cap.reopen(act)) }, { ...(yield* reportOf(scope)) })
      }))

    it.effect("is raised by an act, and then takes more", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const scope = scopeOf("2001-12")
        yield* open(scope, 100n)
        yield* cap.reserve(wish(scope, "a", 100))
        assert.strictEqual((yield* Effect.flip(cap.reserve(wish(scope, "b", 50)))).reason._tag, "CapExceeded")
        const raised = yield* cap.raise({ ...scope, expectedMinor: 150n, headroomPercent: 100, actor: "ada", reason: "late invoices" })
        assert.deepStrictEqual([raised.capMinor, raised.reservedMinor], [150n, 100n])
        yield* cap.reserve(wish(scope, "b", 50))
      }))

    it.effect("counts each currency, period and namespace for itself", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const usd = scopeOf("2002-01")
        const eur = scopeOf("2002-01", "eur")
        const later = scopeOf("2002-02")
        yield* Effect.all([open(usd, 100n), open(eur, 50n), open(later, 10n)])
        const answers = yield* Effect.forEach(
          [wish(usd, "a", 100), wish(eur, "b", 50), wish(later, "c", 10), wish(usd, "d", 1), wish(eur, "e", 1), wish(later, "f", 1)],
          (input) => Effect.result(cap.reserve(input)),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(answers.map(Result.isSuccess), [true, true, true, false, false, false])
        const reports = (yield* cap.report(usd.billingPeriod)).toSorted((a, b) => a.currency.localeCompare(b.currency))
        assert.deepStrictEqual(reports.map((one) => [one.currency, one.reservedMinor]), [["eur", 50n], ["usd", 100n]])
        assert.isTrue((yield* cap.report()).length >= 3)
      }))

    it.effect("counts what one batch takes, gives back and forces under each of many caps", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const scopes = manyScopes(["2002-05", "2002-06"])
        // No two caps hold the same, so that room which goes to the wrong one shows.
        const unit = (index: number) => 10 ** (index % 6) * (1 + Math.floor(index / 6))
        const standing = Effect.forEach(scopes, held)
        const name = (index: number, what: string) => `${what}-${index}`
        yield* all(scopes, (scope, index) => open(scope, BigInt(5 * unit(index))))
        const taken = yield* all([...scopes, ...scopes, ...scopes], (scope, place) =>
          Effect.result(cap.reserve(wish(scope, name(place, "many"), 2 * unit(place % scopes.length)))))
        assert.deepStrictEqual(taken.map(Result.isSuccess), taken.map((_, place) => place < 2 * scopes.length))
        assert.deepStrictEqual(yield* standing, scopes.map((_, index) => [BigInt(4 * unit(index)), 2] as const))

        yield* all(scopes, (scope, index) => index % 3 === 0 ? cap.release(keyOf(scope, name(index, "many")), 1) : Effect.void)
        const left = (index: number) => index % 3 === 0 ? 2 : 4
        assert.deepStrictEqual(yield* standing, scopes.map((_, index) => [BigInt(left(index) * unit(index)), left(index) / 2] as const))

        const over = yield* all(scopes, (scope, index) => cap.reserveByForce(wish(scope, name(index, "forced"), 3 * unit(index))))
        assert.deepStrictEqual(over, scopes.map((_, index) => BigInt(Math.max(0, left(index) + 3 - 5) * unit(index))))
        assert.deepStrictEqual(yield* standing, scopes.map((_, index) => [BigInt((left(index) + 3) * unit(index)), left(index) / 2 + 1] as const))

        yield* all(scopes.flatMap((scope, index) => [0, 1].map((round) => keyOf(scope, name(index + round * scopes.length, "many"))).concat(keyOf(scope, name(index, "forced")))),
          (key) => cap.release(key, 1))
        assert.deepStrictEqual(yield* standing, scopes.map(() => [0n, 0] as const))
      }))

    it.effect("is raised, closed and opened again without a word to the caps beside it", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const scopes = manyScopes(["2002-07", "2002-08"])
        yield* all(scopes, (scope) => open(scope, 100n))
        const apart = Effect.map(Effect.forEach(scopes, reportOf), (reports) => reports.filter(({ capMinor, closed }) => capMinor !== 100n || closed)
          .map(({ billingPeriod, capMinor, closed, currency, namespace }) => ({ namespace, billingPeriod, currency, capMinor, closed })))
        for (const scope of scopes) {
          const act = { ...scope, actor: "ada", reason: "test" }
          yield* cap.raise({ ...act, expectedMinor: 200n, headroomPercent: 100 })
          yield* cap.close(scope)
          assert.deepStrictEqual(yield* apart, [{ ...scope, capMinor: 200n, closed: true }])
          yield* cap.reopen(act)
          assert.deepStrictEqual(yield* apart, [{ ...scope, capMinor: 200n, closed: false }])
          yield* cap.raise({ ...act, expectedMinor: 100n, headroomPercent: 100 })
        }
      }))

    it.effect("adds beyond what a floating point number holds", () =>
      Effect.gen(function*() {
        const cap = yield* SpendCap
        const scope = scopeOf("2002-03")
        const huge = 9_007_199_254_740_993n
        yield* open(scope, huge)
        yield* cap.reserve(wish(scope, "a", 9_007_199_254_740_991))
        yield* cap.reserve(wish(scope, "b", 2))
        assert.deepStrictEqual(yield* held(scope), [huge, 2])
        assert.strictEqual((yield* Effect.flip(cap.reserve(wish(scope, "c", 1)))).reason._tag, "CapExceeded")
      }))
  })
