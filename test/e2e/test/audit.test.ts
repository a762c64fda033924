/**
 * The audit of an account that never saw Purser: what naive programs charged twice is found with its evidence, what only
 * looks alike is not proposed, and the simulator's journal proves that nothing was written.
 */
import { assert, describe, it } from "@effect/vitest"
import { Audit, type AuditOptions, type Suspicion } from "@purser/engine"
import { StripeSim } from "@purser/stripe-sim"
import { Effect, Layer } from "effect"
import { existsSync, readFileSync } from "node:fs"
import { atDesk } from "../src/Desk.ts"
import { account, elsewhere } from "../src/Watch.ts"

/** A program of the naive kind: one call, a key that is new each time. */
const charged = (customer: string, amount: number, params: Readonly<Record<string, string>> = {}, key?: string) =>
  Effect.flatMap(StripeSim, (sim) =>
    Effect.promise(() =>
      fetch(`${sim.url}/v1/charges`, {
        method: "POST",
        headers: {
          authorization: "Bearer sk_test_naive", "content-type": "application/x-www-form-urlencoded",
          ...(key === undefined ? {} : { "idempotency-key": key })
        },
        body: new URLSearchParams({ amount: String(amount), currency: "usd", customer, source: "tok_visa", ...params }).toString()
      }).then((answer) => answer.json() as Promise<{ readonly id: string }>)
    ).pipe(Effect.map(({ id }) => id)))

const audit = (options: Partial<AuditOptions> = {}) =>
  Effect.gen(function*() {
    const found: Array<Suspicion> = []
    const nowMs = yield* (yield* StripeSim).nowMs
    const report = yield* (yield* Audit).audit(
      { sinceMs: nowMs - 40 * 86_400_000, untilMs: nowMs + 60_000, windowMs: 5 * 86_400_000, ...options },
      (suspicion) => Effect.sync(() => void found.push(suspicion))
    )
    return { report, found, pairs: found.map(({ again, first }) => [first.id, again.id]) }
  })
const journal = Effect.flatMap(StripeSim, (sim) => sim.requests)
const of = (found: ReadonlyArray<Suspicion>, id: string) => found.find(({ again }) => again.id === id)

describe("audit", () => {
  const live = (title: string, test: Effect.Effect<void, unknown, Audit | StripeSim>) =>
    it.live(title, () => test.pipe(Effect.provide(Audit.layer.pipe(Layer.provide(account), Layer.provideMerge(StripeSim.layer())))))

  live("finds charges that different keys made twice, names the keys, and writes nothing", Effect.gen(function*() {
    const sim = yield* StripeSim
    const first = yield* charged("cus_a", 1999, { description: "July" }, "job-1")
    yield* charged("cus_b", 1999, { description: "July" }, "job-1b")
    yield* sim.advanceClock("26 hours")
    const again = yield* charged("cus_a", 1999, { description: "July" }, "job-2")
    yield* charged("cus_a", 2500, { description: "August" }, "job-3")
    const before = (yield* journal).length
    const { found, pairs, report } = yield* audit()
    assert.deepStrictEqual(pairs, [[first, again]])
    const [suspicion] = found
    assert.deepStrictEqual(
      [suspicion!.confidence, suspicion!.proposedRefundMinor, suspicion!.first.idempotencyKey, suspicion!.again.idempotencyKey, suspicion!.stripeCustomerId],
      ["high", 1999, "job-1", "job-2", "cus_a"]
    )
    assert.isTrue(suspicion!.evidence.some(({ text }) => text.includes("different idempotency keys")))
    assert.deepStrictEqual([report.charges, report.suspicions, report.proposedMinor], [4, { high: 1, medium: 0, low: 0 }, { usd: 1999 }])
    const calls = (yield* journal).slice(before)
    assert.isAbove(calls.length, 0)
    assert.deepStrictEqual([...new Set(calls.map(({ method }) => method))], ["GET"], "an audit reads")
    assert.strictEqual(calls.reduce((sum, { paymentsMoved }) => sum + paymentsMoved, 0), 0)
  }))

  live("a monthly price is no double charge, and neither is what says of itself that it is another", Effect.gen(function*() {
    const sim = yield* StripeSim
    yield* charged("cus_month", 1000, {}, "m1")
    yield* charged("cus_named", 1000, { "metadata[billing_period]": "2026-06" }, "n1")
    const other = yield* charged("cus_named", 1000, { "metadata[billing_period]": "2026-07" }, "n2")
    yield* sim.advanceClock("30 days")
    yield* charged("cus_month", 1000, {}, "m2")
    const { found, report } = yield* audit()
    assert.deepStrictEqual(found.map(({ again, confidence, proposedRefundMinor }) => [again.id, confidence, proposedRefundMinor]), [[other, "low", 0]])
    assert.deepStrictEqual(report.proposedMinor, {})
    assert.strictEqual((yield* audit({ windowMs: 31 * 86_400_000 })).found.length, 2, "the window is the auditor's choice")
  }))

  live("three charges of one bill are two repetitions; what went back is not proposed again", Effect.gen(function*() {
    const one = yield* charged("cus_three", 700, {}, "k1")
    const two = yield* charged("cus_three", 700, {}, "k2")
    const three = yield* charged("cus_three", 700, {}, "k3")
    yield* elsewhere("POST", "/v1/refunds", { charge: three })
    const { found } = yield* audit()
    assert.strictEqual(found.length, 2)
    assert.deepStrictEqual([of(found, two)?.first.id, of(found, two)?.proposedRefundMinor], [one, 700])
    assert.deepStrictEqual([of(found, three)?.proposedRefundMinor, of(found, three)?.again.amountRefundedMinor], [0, 700])
  }))

  live("payments of every interface are compared, many of them, page by page", Effect.gen(function*() {
    const pay = (customer: string, key: string) =>
      Effect.flatMap(StripeSim, (sim) =>
        Effect.promise(() =>
          fetch(`${sim.url}/v1/payment_intents`, {
            method: "POST",
            headers: { authorization: "Bearer sk_test_naive", "content-type": "application/x-www-form-urlencoded", "idempotency-key": key },
            body: new URLSearchParams({ amount: "1500", currency: "usd", customer, payment_method: "pm_card_visa", confirm: "true", off_session: "true" }).toString()
          }).then((answer) => answer.json() as Promise<{ readonly id: string }>)))
    yield* Effect.forEach(Array.from({ length: 230 }, (_, index) => index), (index) => charged(`cus_${index}`, 1500, {}, `a${index}`), { concurrency: 8 })
    const intent = yield* pay("cus_7", "b7")
    const { found, report } = yield* audit()
    assert.deepStrictEqual([report.charges, found.length, found[0]!.again.paymentIntentId, found[0]!.stripeCustomerId], [231, 1, intent.id, "cus_7"])
    assert.deepStrictEqual([found[0]!.first.idempotencyKey, found[0]!.again.idempotencyKey], ["a7", "b7"])
  }))
})

describe("purser audit", () => {
  it.live("lists, writes a proposal, needs no database, and leaves with 2", () =>
    atDesk((at) =>
      Effect.gen(function*() {
        const pay = (key: string) =>
          Effect.promise(() =>
            fetch(`${at.sim.url}/v1/charges`, {
              method: "POST",
              headers: { authorization: "Bearer sk_test_naive", "content-type": "application/x-www-form-urlencoded", "idempotency-key": key },
              body: new URLSearchParams({ amount: "1000", currency: "usd", customer: "cus_z", source: "tok_visa", description: "base" }).toString()
            }).then((answer) => answer.json() as Promise<{ readonly id: string }>))
        const first = yield* pay("one")
        const clean = yield* at.purser(["audit", "--since", "2026-01-01", "--json"], { PURSER_DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" })
        assert.deepStrictEqual([clean.code, clean.json?.["charges"]], [0, 1], clean.stderr)
        const again = yield* pay("two")
        const before = yield* at.calls
        const ended = yield* at.purser(["audit", "--since", "2026-01-01", "--proposal", at.pathOf("refunds.ndjson")], { PURSER_DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" })
        assert.strictEqual(ended.code, 2, ended.stderr)
        assert.include(ended.stdout, again.id)
        assert.include(ended.stdout, "10.00 usd proposed for refund")
        const lines = readFileSync(at.pathOf("refunds.ndjson"), "utf8").trim().split("\n").map((line) => JSON.parse(line) as Record<string, unknown>)
        assert.strictEqual(lines.length, 1)
        assert.deepStrictEqual(lines[0]!["refund"], { charge: again.id, payment_intent: null, amount: 1000, currency: "usd", reason: "duplicate" })
        assert.deepStrictEqual((lines[0]!["keep"] as Record<string, unknown>)["charge"], first.id)
        const calls = (yield* at.sim.requests).slice(before)
        assert.deepStrictEqual([...new Set(calls.map(({ method }) => method))], ["GET"])
        assert.isFalse(existsSync(at.pathOf("refunds.ndjson.partial")))
        const bad = yield* at.purser(["audit", "--since", "2026-01-01", "--window", "soon"])
        assert.strictEqual(bad.code, 1)
        assert.include(bad.stderr, "--window")
      })), 120_000)
})
