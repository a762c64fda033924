/**
 * Reconciliation of what was billed anew, and of one-call charges that the ledger has forgotten: known by the identity in their
 * metadata, taken in where evidence allows. The simulator's books judge.
 */
import { assert, describe, it } from "@effect/vitest"
import { Ledger, RefundLedger, SpendCap } from "@purser/core"
import { ChargePipeline, type Difference, type ReconcileOptions, Reconciler } from "@purser/engine"
import { PgRefundLedger } from "@purser/postgres"
import { StripeGateway } from "@purser/stripe"
import { StripeSim } from "@purser/stripe-sim"
import { chargeFor, type ChargeForOptions } from "@purser/testkit"
import { Effect, type Layer } from "effect"
import { databases } from "../src/Long.ts"
import { restoreBackup } from "../src/restoreBackup.ts"
import { elsewhere, type WatchServices, watchWorld } from "../src/Watch.ts"
import { openCap, payments } from "../src/World.ts"

const of = (customer: string, options: ChargeForOptions = {}) => {
  const request = chargeFor(customer, "2026-07", { paymentMethod: "pm_saved_acme", ...options })
  return {
    request,
    run: Effect.flatMap(ChargePipeline, (pipeline) => pipeline.charge(request)),
    row: Effect.flatMap(Ledger, (ledger) => ledger.find(request.chargeKey))
  }
}
const reconcile = (options: Partial<ReconcileOptions> = {}) =>
  Effect.gen(function*() {
    const found: Array<Difference> = []
    const nowMs = yield* (yield* StripeSim).nowMs
    const report = yield* (yield* Reconciler).reconcile(
      { billingPeriod: of("any").request.billingPeriod, sinceMs: nowMs - 86_400_000, untilMs: nowMs + 60_000, dryRun: false, orphanAgeMs: 0, ...options },
      (difference) => Effect.sync(() => void found.push(difference))
    )
    return { report, kinds: found.map(({ kind, repaired, revision }) => [kind, revision, repaired]) }
  })
const rebill = (request: ReturnType<typeof of>["request"], amountMinor: number) =>
  Effect.flatMap(RefundLedger, (book) =>
    book.rebill({
      chargeKey: request.chargeKey, amountMinor: amountMinor as typeof request.amountMinor, actor: "test", reason: "right price", unrefunded: true
    })).pipe(Effect.provide(PgRefundLedger.layer))
/** A payment of somebody who said the whole identity. */
const pay = ({ request }: ReturnType<typeof of>, revision: string) =>
  elsewhere("POST", "/v1/payment_intents", {
    amount: String(request.amountMinor), currency: request.currency, customer: request.stripeCustomerId,
    payment_method: "pm_saved_acme", confirm: "true", off_session: "true",
    "metadata[charge_key]": request.chargeKey, "metadata[customer_id]": request.customerId, "metadata[billing_period]": request.billingPeriod,
    "metadata[namespace]": request.namespace, "metadata[generation]": "1", "metadata[revision]": revision
  })

for (const [name, database] of databases) {
  describe(`reconcile of revisions on ${name}`, () => {
    const live = (title: string, test: Effect.Effect<void, unknown, WatchServices>, layer: Layer.Layer<WatchServices, unknown> = watchWorld(database)) =>
      it.live(title, () => Effect.andThen(openCap(of("any").request), test).pipe(Effect.provide(layer)))

    live("what was billed anew is neither missing nor taken for the first billing, before a restore and after it", Effect.gen(function*() {
      const first = of("acme")
      const second = of("acme", { revision: 1, amountMinor: 800 })
      yield* first.run
      assert.strictEqual((yield* rebill(first.request, 800))._tag, "Opened")
      assert.strictEqual((yield* second.run)._tag, "Succeeded")
      assert.deepStrictEqual((yield* reconcile()).kinds, [])
      yield* restoreBackup({ room: true })
      assert.deepStrictEqual((yield* reconcile({ dryRun: true })).report.found, { missing_here: 2 })
      assert.deepStrictEqual((yield* reconcile()).kinds, [["missing_here", 0, "adopted"], ["missing_here", 1, "adopted"]])
      const rows = [yield* first.row, yield* second.row]
      assert.deepStrictEqual(rows.map((row) => [row?.state, Number(row?.request.amountMinor), row?.revises]), [
        ["succeeded", 1000, null], ["succeeded", 800, first.request.chargeKey]
      ])
      assert.notStrictEqual(rows[0]!.paymentIntentId, rows[1]!.paymentIntentId)
      assert.deepStrictEqual([(yield* first.run).alreadySettled, (yield* second.run).alreadySettled, yield* payments(first.request)], [true, true, 2])
      // The act is known again: the same one finds its revision, and does not open another.
      assert.strictEqual((yield* rebill(first.request, 800))._tag, "Present")
      const [cap] = yield* (yield* SpendCap).report(first.request.billingPeriod)
      assert.strictEqual(cap!.reservedMinor, 1800n)
      assert.deepStrictEqual((yield* reconcile()).kinds, [])
    }))

    live("revisions are taken in after what they bill anew, in whatever order they are met", Effect.gen(function*() {
      const charges = [2, 1, 0].map((revision) => of("acme", { amountMinor: 1000 - revision, ...(revision === 0 ? {} : { revision }) }))
      for (const [at, charge] of charges.entries()) yield* pay(charge, at === 2 ? "" : String(2 - at))
      assert.deepStrictEqual((yield* reconcile()).kinds, [0, 1, 2].map((revision) => ["missing_here", revision, "adopted"]))
      assert.deepStrictEqual(yield* Effect.forEach(charges, ({ row }) => Effect.map(row, (found) => found?.state)), ["succeeded", "succeeded", "succeeded"])
    }))

    live("a revision without the charge that it bills anew, or with a number that is none, is told and not taken in", Effect.gen(function*() {
      yield* pay(of("lonely", { revision: 1 }), "1")
      yield* pay(of("odd"), "one")
      const { kinds, report } = yield* reconcile()
      assert.deepStrictEqual([kinds.toSorted(), report.remaining], [[["missing_here", 1, null], ["missing_here", null, null]].toSorted(), 2])
      assert.deepStrictEqual([report.rows, (yield* reconcile()).report.repaired], [0, 0])
    }))

    live("one-call charges that the ledger has forgotten are taken in, and asked for no more", Effect.gen(function*() {
      const good = of("good", { paymentMethod: "tok_visa" })
      yield* good.run
      const planned = of("planned", { paymentMethod: "tok_visa" })
      yield* planned.run
      yield* restoreBackup({ room: true })
      const twice = of("twice")
      for (let made = 0; made < 2; made++) {
        yield* elsewhere("POST", "/v1/charges", {
          amount: "1000", currency: "usd", source: "tok_visa", customer: twice.request.stripeCustomerId, "metadata[charge_key]": twice.request.chargeKey,
          "metadata[billing_period]": "2026-07", "metadata[customer_id]": "twice", "metadata[namespace]": twice.request.namespace
        })
      }
      const { kinds, report } = yield* reconcile({ methods: "default" })
      assert.deepStrictEqual(kinds.map(String).toSorted(), [...Array.from({ length: 3 }, () => "missing_here,0,adopted"), "paid_twice,0,"].toSorted())
      assert.strictEqual(report.remaining, 1)
      for (const charge of [good, planned]) {
        const row = yield* charge.row
        assert.deepStrictEqual([row?.state, row?.paymentIntentId?.startsWith("charges:"), yield* payments(charge.request)], ["succeeded", true, 1])
        const again = of(charge.request.customerId, { paymentMethod: null })
        assert.deepStrictEqual([(yield* again.run).alreadySettled, yield* payments(charge.request)], [true, 1])
      }
      assert.deepStrictEqual((yield* reconcile()).kinds.map(String), ["paid_twice,0,"])
    }), watchWorld(database, StripeGateway.layerChargesWith))
  })
}
