/**
 * Connected accounts beyond the charge itself: their events, reconciliation, a restore, and refunds. Each account's own books
 * are the judge, and the journal tells which account was read.
 */
import { assert, describe, it } from "@effect/vitest"
import { Ledger, Sightings } from "@purser/core"
import { ChargePipeline, type Difference, type ReconcileOptions, Reconciler } from "@purser/engine"
import { namespaceFor, StripeGateway } from "@purser/stripe"
import { StripeSim } from "@purser/stripe-sim"
import { chargeFor, type ChargeForOptions } from "@purser/testkit"
import { Effect, type Layer } from "effect"
import { SqlClient } from "effect/sql"
import { databases } from "../src/Long.ts"
import { paidCharge, refund, refundFor, refundWorld } from "../src/RefundWorld.ts"
import { deliver, elsewhere, type WatchServices, watchWorld } from "../src/Watch.ts"
import { Crash, openCap } from "../src/World.ts"

const berlin = "acct_1Berlin"
const oslo = "acct_1Oslo"
const inAccount = (account: string): ChargeForOptions => ({ namespace: namespaceFor("zmq-billing", account) })
const of = (customer: string, options: ChargeForOptions = {}) => {
  const request = chargeFor(customer, "2026-07", options)
  return {
    request,
    run: Effect.andThen(openCap(request), Effect.flatMap(ChargePipeline, (pipeline) => pipeline.charge(request))),
    row: Effect.flatMap(Ledger, (ledger) => Effect.map(ledger.find(request.chargeKey), (row) => row!))
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
    return { report, kinds: found.map(({ kind, repaired }) => [kind, repaired]) }
  })
/** Payments by account, as the books have them. */
const paidIn = Effect.map(Effect.flatMap(StripeSim, (sim) => sim.books), (books) =>
  books.filter(({ payments }) => payments > 0).map(({ account, customer, payments }) => `${account ?? "own"} ${customer} ${payments}`).toSorted())
const listedAccounts = Effect.map(Effect.flatMap(StripeSim, (sim) => sim.requests), (requests) =>
  [...new Set(requests.filter(({ method, path }) => method === "GET" && path === "/v1/payment_intents").map(({ account }) => account ?? "own"))].toSorted())
const dead = <E, R>(run: Effect.Effect<unknown, E, R>) => Effect.andThen(Effect.flatMap(Crash, (crash) => crash.at("after-confirm")), Effect.exit(run))

for (const [name, database] of databases) {
  describe(`connected accounts on ${name}`, () => {
    const live = (title: string, test: Effect.Effect<void, unknown, WatchServices>, layer: Layer.Layer<WatchServices, unknown> = watchWorld(database)) =>
      it.live(title, () => test.pipe(Effect.provide(layer)))

    live("an event is dealt with in the account that it names, and another program's objects there are not ours", Effect.gen(function*() {
      const own = of("acme")
      const there = of("acme", inAccount(berlin))
      yield* dead(own.run)
      yield* dead(there.run)
      const id = (yield* there.row).paymentIntentId!
      yield* deliver({ id: "evt_wrong", type: "payment_intent.succeeded", objectId: id, account: oslo })
      assert.strictEqual((yield* there.row).state, "attached", "in another account there is no such object")
      yield* deliver({ id: "evt_paid", type: "payment_intent.succeeded", objectId: id, account: berlin })
      assert.deepStrictEqual([(yield* there.row).state, (yield* own.row).state], ["succeeded", "attached"])
      yield* elsewhere("POST", "/v1/refunds", { payment_intent: id, amount: "250" }, berlin)
      const charge = (yield* there.row).outcome
      yield* deliver({ id: "evt_refund", type: "charge.refunded", objectId: charge?._tag === "Succeeded" ? charge.chargeId! : "", account: berlin })
      const sightings = yield* Sightings
      assert.deepStrictEqual((yield* sightings.movements(there.request.chargeKey)).map(({ amountMinor, kind }) => [kind, amountMinor]), [["refund", 250]])
      const foreign = yield* elsewhere("POST", "/v1/payment_intents", {
        amount: "700", currency: "usd", customer: "cus_x", payment_method: "pm_card_visa", confirm: "true", off_session: "true"
      }, berlin)
      yield* deliver({ id: "evt_foreign", type: "payment_intent.succeeded", objectId: String(foreign["id"]), account: berlin })
      // One that bears our key and names no account of its own is not believed there either.
      const lying = yield* elsewhere("POST", "/v1/payment_intents", {
        amount: "1000", currency: "usd", customer: "cus_acme", payment_method: "pm_card_visa", confirm: "true", off_session: "true",
        "metadata[charge_key]": own.request.chargeKey, "metadata[namespace]": own.request.namespace
      }, berlin)
      yield* deliver({ id: "evt_lying", type: "payment_intent.succeeded", objectId: String(lying["id"]), account: berlin })
      assert.deepStrictEqual([yield* sightings.unknown("", 10), (yield* own.row).state], [[], "attached"])
    }))

    for (const [gateway, layer] of [["payment_intents", watchWorld(database)], ["charges", watchWorld(database, StripeGateway.layerChargesWith)], ["invoices", watchWorld(database, StripeGateway.layerInvoicesWith())]] as const) {
      live(`reconcile lists the accounts that have charges in the period, and no other, with ${gateway}`, Effect.gen(function*() {
        const method = gateway === "charges" ? { paymentMethod: "tok_visa" } : gateway === "invoices" ? { paymentMethod: "pm_saved_acme" } : {}
        const own = of("acme", method)
        const there = of("acme", { ...method, ...inAccount(berlin) })
        yield* own.run
        yield* dead(there.run)
        assert.strictEqual((yield* there.row).state, "attached")
        const { kinds, report } = yield* reconcile()
        assert.deepStrictEqual([kinds, report.accounts, report.ours], [[["state_differs", "settled"]], [null, berlin], 2])
        assert.strictEqual((yield* there.row).state, "succeeded")
        assert.deepStrictEqual([(yield* reconcile()).kinds, yield* listedAccounts], [[], [berlin, "own"]])
        assert.deepStrictEqual(yield* paidIn, [`${berlin} acme 1`, "own acme 1"])
      }), layer)
    }

    live("reconcile reads the platform alone when it alone has charges", Effect.gen(function*() {
      yield* of("acme").run
      yield* elsewhere("POST", "/v1/payment_intents", { amount: "700", currency: "usd", customer: "cus_x" }, berlin)
      const { report } = yield* reconcile()
      assert.deepStrictEqual([report.accounts, report.remaining, yield* listedAccounts], [[null], 0, ["own"]])
    }))

    live("after a restore a payment of a connected account is taken in, and not paid again", Effect.gen(function*() {
      const there = of("acme", { ...inAccount(berlin), paymentMethod: "pm_saved_acme" })
      yield* there.run
      const sql = yield* SqlClient.SqlClient
      yield* sql.withTransaction(Effect.andThen(
        sql`set local session_replication_role = replica`,
        sql`truncate purser.charges, purser.charge_event_pages, purser.charge_objects, purser.cap_reservations`
      ))
      // Nothing in the ledger tells that the account has charges: its namespace does.
      assert.deepStrictEqual((yield* reconcile()).report.accounts, [null])
      const { kinds, report } = yield* reconcile({ namespace: there.request.namespace })
      assert.deepStrictEqual([kinds, report.accounts], [[["missing_here", "adopted"]], [berlin]])
      assert.strictEqual((yield* there.run)._tag, "Succeeded")
      assert.deepStrictEqual(yield* paidIn, [`${berlin} acme 1`])
    }))

    live("a payment in an account that its namespace does not name is told, and nothing is done about it", Effect.gen(function*() {
      const own = of("acme")
      yield* own.run
      yield* of("other", inAccount(berlin)).run
      const made = yield* elsewhere("POST", "/v1/payment_intents", {
        amount: "1000", currency: "usd", customer: "cus_acme", payment_method: "pm_card_visa", confirm: "true", off_session: "true",
        "metadata[charge_key]": own.request.chargeKey, "metadata[namespace]": own.request.namespace, "metadata[customer_id]": "acme",
        "metadata[billing_period]": "2026-07"
      }, berlin)
      assert.strictEqual(made["status"], "succeeded")
      const { kinds, report } = yield* reconcile()
      assert.deepStrictEqual([kinds, report.remaining, (yield* own.row).state], [[["not_attached", null]], 1, "succeeded"])
    }))

    it.live("a refund goes back from the account that was paid", () =>
      Effect.gen(function*() {
        const request = chargeFor("acme", "2026-07", inAccount(oslo))
        yield* paidCharge(request)
        assert.strictEqual((yield* refund(refundFor(request, 400)))._tag, "Refunded")
        assert.strictEqual((yield* refund(refundFor(request, 400)))._tag, "Refunded")
        const books = (yield* (yield* StripeSim).books).filter(({ refunds = 0 }) => refunds > 0)
        assert.deepStrictEqual(books.map(({ account, refundedMinor, refunds }) => [account, refunds, refundedMinor]), [[oslo, 1, 400]])
      }).pipe(Effect.provide(refundWorld(database))))
  })
}
