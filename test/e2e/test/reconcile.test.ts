/**
 * Reconciliation on both databases against the simulator: every kind of difference, what is repaired, what is told, and the
 * procedure after a ledger was restored from a backup. The simulator's books judge, and its journal tells who asked for what.
 */
import { assert, describe, it } from "@effect/vitest"
import { ChargeRequest, Ledger, Sightings, SpendCap } from "@purser/core"
import { ChargePipeline, type Difference, type ReconcileOptions, Reconciler } from "@purser/engine"
import { StripeGateway } from "@purser/stripe"
import { StripeSim } from "@purser/stripe-sim"
import { chargeFor, type ChargeForOptions } from "@purser/testkit"
import { Effect, Exit, type Layer } from "effect"
import { SqlClient } from "effect/sql"
import { databases } from "../src/Long.ts"
import { restoreBackup } from "../src/restoreBackup.ts"
import { deliver, elsewhere, type WatchServices, watchWorld } from "../src/Watch.ts"
import { advance, Crash, openCap, payments } from "../src/World.ts"

const period = chargeFor("any", "2026-07").billingPeriod
const of = (customer: string, options: ChargeForOptions = {}) => {
  const request = chargeFor(customer, "2026-07", options)
  return {
    request,
    run: Effect.flatMap(ChargePipeline, (pipeline) => pipeline.charge(request)),
    row: Effect.flatMap(Ledger, (ledger) => Effect.map(ledger.find(request.chargeKey), (row) => row!))
  }
}
/** A day before the simulator's clock, which is real. */
const reconcile = <R = never>(options: Partial<ReconcileOptions> = {}, meanwhile: (difference: Difference) => Effect.Effect<unknown, unknown, R> = () => Effect.void) =>
  Effect.gen(function*() {
    const context = yield* Effect.context<R>()
    const found: Array<Difference> = []
    const nowMs = yield* (yield* StripeSim).nowMs
    const report = yield* (yield* Reconciler).reconcile(
      { billingPeriod: period, sinceMs: nowMs - 86_400_000, untilMs: nowMs + 60_000, dryRun: false, orphanAgeMs: 0, ...options },
      (difference) => Effect.andThen(Effect.sync(() => void found.push(difference)), Effect.provideContext(Effect.orDie(meanwhile(difference)), context))
    )
    return { report, found, kinds: found.map(({ kind, repaired }) => [kind, repaired]) }
  })
const writes = Effect.flatMap(StripeSim, (sim) => Effect.map(sim.requests, (all) => all.filter(({ method }) => method !== "GET").length))
const intent = (request: ReturnType<typeof of>["request"], params: Readonly<Record<string, string>> = {}) =>
  Effect.map(
    elsewhere("POST", "/v1/payment_intents", {
      amount: String(request.amountMinor), currency: request.currency, customer: request.stripeCustomerId,
      "metadata[charge_key]": request.chargeKey, "metadata[customer_id]": request.customerId, "metadata[billing_period]": request.billingPeriod,
      "metadata[namespace]": request.namespace, "metadata[generation]": "1", ...params
    }),
    (made) => String(made["id"])
  )
const paying = { payment_method: "pm_card_visa", confirm: "true", off_session: "true" }
const statusAtStripe = (id: string) => Effect.map(elsewhere("GET", `/v1/payment_intents/${id}`), (found) => found["status"])

for (const [name, database] of databases) {
  describe(`reconcile on ${name}`, () => {
    const live = (title: string, test: Effect.Effect<void, unknown, WatchServices>, layer: Layer.Layer<WatchServices, unknown> = watchWorld(database)) =>
      it.live(title, () => Effect.andThen(openCap(of("any").request), test).pipe(Effect.provide(layer)))

    live("finds nothing where all is as it should be, and writes nothing", Effect.gen(function*() {
      yield* Effect.forEach(["a", "b", "c"], (customer) => of(customer).run)
      yield* of("d", { paymentMethod: "pm_card_visa_chargeDeclined" }).run
      yield* of("e", { paymentMethod: "pm_card_authenticationRequired" }).run
      yield* of("f", { paymentMethod: "pm_usBankAccount_processing" }).run
      yield* elsewhere("POST", "/v1/payment_intents", { amount: "700", currency: "usd", customer: "cus_x" })
      const before = yield* writes
      const { found, report } = yield* reconcile()
      assert.deepStrictEqual(found, [])
      assert.deepStrictEqual(
        [report.rows, report.ours, report.foreign, report.open, report.repaired, report.remaining], [6, 6, 1, 0, 0, 0]
      )
      assert.strictEqual(yield* writes, before)
    }))

    live("settles what Stripe has decided meanwhile", Effect.gen(function*() {
      const paid = of("paid", { paymentMethod: "pm_usBankAccount_processing" })
      const failed = of("failed", { paymentMethod: "pm_usBankAccount_processing" })
      const dead = of("dead")
      yield* paid.run
      yield* failed.run
      yield* (yield* Crash).at("after-confirm")
      assert.isTrue(Exit.hasDies(yield* Effect.exit(dead.run)))
      const sim = yield* StripeSim
      yield* sim.settle((yield* paid.row).paymentIntentId!, "succeeded")
      yield* sim.settle((yield* failed.row).paymentIntentId!, "failed")
      const dry = yield* reconcile({ dryRun: true })
      assert.deepStrictEqual(dry.kinds, Array.from({ length: 3 }, () => ["state_differs", "settled"]))
      assert.deepStrictEqual([dry.report.repaired, dry.report.remaining, (yield* paid.row).state, (yield* dead.row).state], [0, 3, "processing", "attached"])
      const { report } = yield* reconcile()
      assert.deepStrictEqual([report.found, report.repaired, report.remaining], [{ state_differs: 3 }, 3, 0])
      assert.deepStrictEqual([(yield* paid.row).state, (yield* failed.row).state, (yield* dead.row).state], ["succeeded", "declined", "succeeded"])
      assert.deepStrictEqual((yield* reconcile()).found, [])
      assert.strictEqual(yield* payments(dead.request), 1)
    }))

    live("gives up unpaid objects that no row names, when they are old enough", Effect.gen(function*() {
      const { request, row, run } = of("orphaned")
      yield* run
      const orphan = yield* intent(request)
      const declined = yield* intent(request)
      yield* elsewhere("POST", `/v1/payment_intents/${declined}/confirm`, { payment_method: "pm_card_visa_chargeDeclined" })
      assert.deepStrictEqual((yield* reconcile({ orphanAgeMs: 3_600_000 })).found, [], "it may be somebody's who is just making it")
      assert.deepStrictEqual((yield* reconcile({ dryRun: true })).kinds, [["orphan", "canceled"], ["orphan", "canceled"]])
      assert.strictEqual(yield* statusAtStripe(orphan), "requires_payment_method")
      const { report } = yield* reconcile()
      assert.deepStrictEqual([report.found, report.repaired, report.remaining], [{ orphan: 2 }, 2, 0])
      assert.deepStrictEqual([yield* statusAtStripe(orphan), yield* statusAtStripe(declined)], ["canceled", "canceled"])
      assert.deepStrictEqual([(yield* row).state, yield* statusAtStripe((yield* row).paymentIntentId!)], ["succeeded", "succeeded"])
      assert.deepStrictEqual((yield* reconcile()).found, [])
    }))

    live("looks once more at the row before it gives an object up: one that a worker has attached meanwhile is left alone", Effect.gen(function*() {
      const both = [of("renewed-a"), of("renewed-b")]
      const orphans = yield* Effect.forEach(both, ({ request, run }) => Effect.gen(function*() {
        yield* (yield* Crash).at("after-attach")
        yield* Effect.exit(run)
        return yield* intent(request)
      }))
      const ledger = yield* Ledger
      const attachOrphan = Effect.fnUntraced(function*(at: number) {
        const { paymentIntentId } = yield* both[at]!.row
        const lease = { chargeKey: both[at]!.request.chargeKey, worker: "world", epoch: 1 }
        assert.isTrue(yield* ledger.renew({ lease, generation: 1, paymentIntentId: paymentIntentId! }))
        yield* ledger.attach({ lease, generation: 2, paymentIntentId: orphans[at]!, paymentMethod: "pm_card_visa" })
      })
      // Both were read as orphans; while the first is told, the row of the second comes to name its own.
      let told = 0
      const { found, kinds } = yield* reconcile({}, ({ objects }) => told++ > 0 ? Effect.void : attachOrphan(1 - orphans.indexOf(objects[0]!.id)))
      assert.deepStrictEqual(kinds, [["orphan", "canceled"], ["orphan", null]])
      assert.deepStrictEqual(yield* Effect.forEach(found, ({ objects }) => statusAtStripe(objects[0]!.id)), ["canceled", "requires_payment_method"])
    }))

    live("leaves the object alone that a worker has just made for a row without one", Effect.gen(function*() {
      const { row, run } = of("making")
      yield* (yield* Crash).at("after-create")
      yield* Effect.exit(run)
      assert.isNull((yield* row).paymentIntentId)
      const { found, report } = yield* reconcile()
      assert.deepStrictEqual([found, report.open], [[], 1])
      yield* advance("1 minute")
      assert.strictEqual((yield* run)._tag, "Succeeded")
    }))

    live("tells two payments for one identity, and refunds nothing", Effect.gen(function*() {
      const { request, run } = of("twice")
      yield* run
      const second = yield* intent(request, paying)
      const before = yield* writes
      const { found, report } = yield* reconcile()
      assert.deepStrictEqual([report.found, report.remaining], [{ paid_twice: 1 }, 1])
      assert.isTrue(found[0]!.objects.some(({ id }) => id === second))
      assert.strictEqual(found[0]!.objects.length, 2)
      assert.strictEqual(yield* writes, before)
    }))

    live("tells a payment of another amount", Effect.gen(function*() {
      const { request, row, run } = of("other-amount")
      yield* (yield* Crash).at("after-attach")
      yield* Effect.exit(run)
      const id = (yield* row).paymentIntentId!
      yield* elsewhere("POST", `/v1/payment_intents/${id}`, { amount: "900" })
      yield* elsewhere("POST", `/v1/payment_intents/${id}/confirm`, { payment_method: "pm_card_visa" })
      const { found, report } = yield* reconcile()
      assert.deepStrictEqual([report.found, report.remaining], [{ amount_differs: 1 }, 1])
      assert.include(found[0]!.detail, "amount is 9.00 usd, not 10.00 usd")
      assert.strictEqual(found[0]!.customerId, request.customerId)
    }))

    live("tells a row that is paid by an object of which Stripe knows nothing", Effect.gen(function*() {
      const { request, run } = of("nowhere")
      yield* run
      const sql = yield* SqlClient.SqlClient
      yield* sql`update purser.charges set payment_intent_id = 'pi_NOWHERE', outcome_payment_intent_id = 'pi_NOWHERE' where charge_key = ${request.chargeKey}`
      const { found, report } = yield* reconcile()
      // The payment that Stripe does have bears the key of a row that names another one.
      assert.deepStrictEqual([report.found, report.remaining], [{ missing_there: 1 }, 1])
      assert.include(found[0]!.detail, "pi_NOWHERE does not exist")
    }))

    live("a payment older than the list is read before it is called missing", Effect.gen(function*() {
      yield* of("early").run
      yield* (yield* StripeSim).advanceClock("3 days")
      const nowMs = yield* (yield* StripeSim).nowMs
      const { found, report } = yield* reconcile({ sinceMs: nowMs - 60_000 })
      assert.deepStrictEqual([found, report.ours, report.rows], [[], 0, 1])
    }))

    live("takes a payment into a row that had been rejected without an object", Effect.gen(function*() {
      const { request, row, run } = of("rejected", { amountMinor: 2_000_000 })
      assert.strictEqual((yield* run)._tag, "Rejected")
      const id = yield* intent(request, paying)
      const { kinds } = yield* reconcile()
      assert.deepStrictEqual(kinds, [["missing_here", "adopted"]])
      assert.deepStrictEqual([(yield* row).state, (yield* row).paymentIntentId, yield* payments(request)], ["succeeded", id, 1])
      const [cap] = yield* (yield* SpendCap).report(period)
      assert.strictEqual(cap!.reservedMinor, 2_000_000n, "what was paid holds its room, whatever the cap says")
    }))

    live("after a restore: what was paid is taken in before anything is made, and nobody pays twice", Effect.gen(function*() {
      const paid = ["a", "b"].map((customer) => of(customer, { paymentMethod: `pm_saved_${customer}` }))
      const byDefault = of("by-default", { paymentMethod: null })
      const unpaid = of("unpaid")
      yield* Effect.forEach([...paid, byDefault], ({ run }) => run)
      yield* (yield* Crash).at("after-attach")
      yield* Effect.exit(unpaid.run)
      yield* restoreBackup()
      yield* advance("2 days")
      const nowMs = yield* (yield* StripeSim).nowMs
      const restored = { sinceMs: nowMs - 3 * 86_400_000 }
      const before = yield* writes
      const dry = yield* reconcile({ ...restored, dryRun: true })
      assert.deepStrictEqual([dry.report.found, dry.report.repaired], [{ missing_here: 3, orphan: 1 }, 0])
      assert.strictEqual((yield* reconcile({ ...restored, namespace: "another" })).report.ours, 0)
      const { kinds, report } = yield* reconcile(restored)
      assert.deepStrictEqual(kinds.filter(([kind]) => kind === "missing_here").map(String), Array.from({ length: 3 }, () => "missing_here,adopted"))
      assert.deepStrictEqual([report.repaired, report.remaining], [3, 1], "an unpaid object is adopted by the next run, not here")
      assert.strictEqual(yield* writes, before, "reconciliation asks nobody for money")
      for (const { request, row, run } of paid) {
        assert.strictEqual((yield* row).state, "succeeded")
        const again = yield* run
        assert.deepStrictEqual([again._tag, again.alreadySettled, yield* payments(request)], ["Succeeded", true, 1])
      }
      // The row asks for the method that was used: a request for the default one is a conflict, loud and unpaid.
      assert.strictEqual((yield* byDefault.row).state, "succeeded")
      yield* Effect.exit(byDefault.run)
      assert.strictEqual(yield* payments(byDefault.request), 1)
      // With the ledger in use again nobody adopts it any more: it is given up, and its charge is paid by another one.
      assert.deepStrictEqual((yield* reconcile(restored)).kinds, [["orphan", "canceled"]])
      assert.strictEqual((yield* unpaid.run)._tag, "Succeeded")
      assert.strictEqual(yield* payments(unpaid.request), 1)
    }))

    live("an unpaid object without a row is given up only where it is ours by all that is known, and told why not", Effect.gen(function*() {
      yield* of("known").run
      const forgotten = yield* intent(of("forgotten").request)
      const vague = yield* intent(of("vague").request, { "metadata[customer_id]": "" })
      const others = yield* intent(new ChargeRequest({ ...of("others").request, namespace: "other-ledger" }))
      const young = yield* reconcile({ orphanAgeMs: 3_600_000 })
      assert.deepStrictEqual(young.kinds.map(String), ["orphan,", "orphan,", "orphan,"])
      const dry = yield* reconcile({ dryRun: true })
      assert.deepStrictEqual([dry.kinds.filter(([, repaired]) => repaired === "canceled").length, dry.report.repaired, dry.report.remaining], [1, 0, 3])
      assert.strictEqual(yield* statusAtStripe(forgotten), "requires_payment_method", "a dry run gives nothing up")
      const { found } = yield* reconcile()
      const said = new Map(found.map(({ detail, objects, repaired }) => [objects[0]!.id, [repaired, detail]]))
      assert.strictEqual(said.get(forgotten)![0], "canceled")
      assert.deepStrictEqual([said.get(vague)![0], said.get(others)![0]], [null, null])
      assert.include(said.get(vague)![1]!, "its metadata do not tell customer_id")
      assert.include(said.get(others)![1]!, "it may be another ledger's")
      assert.deepStrictEqual(yield* Effect.forEach([forgotten, vague, others], statusAtStripe), ["canceled", "requires_payment_method", "requires_payment_method"])
      assert.strictEqual((yield* of("forgotten").run)._tag, "Succeeded")
      assert.strictEqual(yield* payments(of("forgotten").request), 1)
    }))

    live("an unpaid object whose row comes to be while the list is gone through is left alone", Effect.gen(function*() {
      yield* of("known").run
      const both = [of("late-a"), of("late-b")]
      const orphans = yield* Effect.forEach(both, ({ request }) => intent(request))
      // A worker claims the charge of the second while the first is told.
      let told = 0
      const { found } = yield* reconcile({}, ({ objects }) =>
        told++ > 0 ? Effect.void : Effect.gen(function*() {
          yield* (yield* Crash).at("after-claim")
          yield* Effect.exit(both[1 - orphans.indexOf(objects[0]!.id)]!.run)
        }))
      assert.deepStrictEqual(found.map(({ repaired }) => repaired), ["canceled", null])
      assert.include(found[1]!.detail, "left alone: it changed meanwhile")
      assert.strictEqual(yield* statusAtStripe(found[1]!.objects[0]!.id), "requires_payment_method")
    }))

    live("a payment that does not tell its whole identity, or lies about it, is listed and not taken in", Effect.gen(function*() {
      const { request } = of("vague")
      const vague = yield* intent(request, { ...paying, "metadata[customer_id]": "" })
      const lying = yield* intent(of("liar").request, { ...paying, "metadata[customer_id]": "somebody_else" })
      const { found, kinds, report } = yield* reconcile()
      assert.deepStrictEqual([kinds, report.remaining], [[["missing_here", null], ["missing_here", null]], 2])
      const why = new Map(found.map(({ detail, objects }) => [objects[0]!.id, detail]))
      assert.include(why.get(vague)!, "not taken in: its metadata do not tell customer_id")
      assert.include(why.get(lying)!, "not taken in: its charge_key is not that of the identity")
      assert.deepStrictEqual((yield* (yield* Sightings).unknown("", 10)).map(({ id }) => id), [vague, lying].sort())
    }))

    live("the one-call interface: charges are compared as what they are", Effect.gen(function*() {
      const good = of("good", { paymentMethod: "tok_visa" })
      const dead = of("dead", { paymentMethod: "tok_visa" })
      yield* good.run
      assert.deepStrictEqual((yield* reconcile()).found, [])
      yield* (yield* Crash).at("after-confirm")
      yield* Effect.exit(dead.run)
      const { kinds } = yield* reconcile()
      assert.deepStrictEqual([kinds, (yield* dead.row).state], [[["state_differs", "settled"]], "succeeded"])
      yield* elsewhere("POST", "/v1/charges", {
        amount: "1000", currency: "usd", source: "tok_visa", customer: good.request.stripeCustomerId, "metadata[charge_key]": good.request.chargeKey,
        "metadata[billing_period]": period, "metadata[customer_id]": "good", "metadata[namespace]": good.request.namespace
      })
      assert.deepStrictEqual((yield* reconcile()).kinds, [["paid_twice", null]])
    }), watchWorld(database, StripeGateway.layerChargesWith))

    live("invoices are compared as what they are, by webhook and by reconciliation", Effect.gen(function*() {
      const good = of("good", { paymentMethod: "pm_saved_good" })
      const told = of("told", { paymentMethod: "pm_saved_told" })
      const dead = of("dead", { paymentMethod: "pm_saved_dead" })
      yield* good.run
      assert.match((yield* good.row).paymentIntentId ?? "", /^in_/)
      assert.deepStrictEqual((yield* reconcile()).found, [])
      for (const { run } of [told, dead]) {
        yield* (yield* Crash).at("after-confirm")
        yield* Effect.exit(run)
      }
      yield* deliver({ id: "evt_invoice", type: "invoice.paid", objectId: (yield* told.row).paymentIntentId! })
      assert.strictEqual((yield* told.row).state, "succeeded")
      const { kinds, report } = yield* reconcile()
      assert.deepStrictEqual([kinds, report.ours, (yield* dead.row).state], [[["state_differs", "settled"]], 3, "succeeded"])
      assert.deepStrictEqual((yield* reconcile()).found, [])
      // The invoice's own payment bears none of our metadata; what it says leads to the invoice, and to its row.
      const charges = yield* elsewhere("GET", "/v1/charges?limit=100")
      for (const { id, payment_intent } of charges["data"] as ReadonlyArray<{ readonly id: string; readonly payment_intent: string }>) {
        yield* deliver({ id: `evt_${id}`, type: "charge.succeeded", objectId: id })
        yield* deliver({ id: `evt_${payment_intent}`, type: "payment_intent.succeeded", objectId: payment_intent })
        yield* elsewhere("POST", "/v1/refunds", { charge: id, amount: "100" })
        yield* deliver({ id: `evt_${id}_refunded`, type: "charge.refunded", objectId: id })
      }
      const sightings = yield* Sightings
      assert.deepStrictEqual(yield* sightings.unknown("", 100), [])
      for (const { request } of [good, told, dead]) assert.strictEqual((yield* sightings.movements(request.chargeKey)).length, 1)
    }), watchWorld(database, StripeGateway.layerInvoicesWith()))

    live("refunds and disputes that were made elsewhere come to show beside the row", Effect.gen(function*() {
      const { request, row, run } = of("refunded")
      yield* run
      yield* elsewhere("POST", "/v1/refunds", { payment_intent: (yield* row).paymentIntentId!, amount: "250" })
      assert.deepStrictEqual((yield* reconcile()).found, [])
      const movements = yield* (yield* Sightings).movements(request.chargeKey)
      assert.deepStrictEqual(movements.map(({ amountMinor, kind }) => [kind, amountMinor]), [["refund", 250]])
    }))
  })
}
