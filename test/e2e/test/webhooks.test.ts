/**
 * Webhooks end to end on both databases, with the real Stripe SDK against the simulator: events twice, late, out of order
 * and about things that nobody knows. The object decides, and the simulator's books judge.
 */
import { assert, describe, it } from "@effect/vitest"
import { Ledger, Sightings, SpendCap, WebhookInbox } from "@purser/core"
import { ChargePipeline, Sweeper, Webhooks } from "@purser/engine"
import * as TestDatabase from "@purser/postgres/TestDatabase"
import { StripeGateway } from "@purser/stripe"
import { StripeSim } from "@purser/stripe-sim"
import { chargeFor } from "@purser/testkit"
import { Effect, Exit, Fiber, type Layer } from "effect"
import { SqlClient } from "effect/sql"
import { readFileSync } from "node:fs"
import { databases } from "../src/Long.ts"
import { deliver, elsewhere, signed, type WatchServices, watchWorld } from "../src/Watch.ts"
import { advance, Crash, openCap, payments } from "../src/World.ts"

const charged = (method: string, customer = "cust_1") => {
  const request = chargeFor(customer, "2026-07", { paymentMethod: method })
  return {
    request,
    run: Effect.flatMap(ChargePipeline, (pipeline) => pipeline.charge(request)),
    row: Effect.flatMap(Ledger, (ledger) => Effect.map(ledger.find(request.chargeKey), (row) => row!)),
    events: Effect.flatMap(Ledger, (ledger) => ledger.events(request.chargeKey))
  }
}
const debit = charged("pm_usBankAccount_processing")
const verdict = (id: string) =>
  Effect.flatMap(WebhookInbox, (inbox) => Effect.map(inbox.recent(1000), (events) => events.find(({ event }) => event.id === id)?.verdict))
const unknown = Effect.flatMap(Sightings, (sightings) => sightings.unknown("", 100))
const reserved = Effect.flatMap(SpendCap, (cap) => Effect.map(cap.report(debit.request.billingPeriod), ([report]) => report!.reservedMinor))
const settleAtStripe = (id: string, outcome: "succeeded" | "failed") => Effect.flatMap(StripeSim, (sim) => sim.settle(id, outcome))

/** A debit that Stripe has accepted and not settled. */
const accepted = Effect.gen(function*() {
  assert.strictEqual((yield* debit.run)._tag, "Processing")
  return (yield* debit.row).paymentIntentId!
})

for (const [name, database] of databases) {
  describe(`webhooks on ${name}`, () => {
    const live = (title: string, test: Effect.Effect<void, unknown, WatchServices>, layer: Layer.Layer<WatchServices, unknown> = watchWorld(database)) =>
      it.live(title, () => Effect.andThen(openCap(debit.request), test).pipe(Effect.provide(layer)))

    live("E9: twice, late, out of order, badly signed, and about an unknown charge", Effect.gen(function*() {
      const id = yield* accepted
      yield* settleAtStripe(id, "succeeded")
      const lines = readFileSync(new URL("./fixtures/E9-events.ndjson", import.meta.url), "utf8").trim().split("\n")
      const webhooks = yield* Webhooks
      for (const line of lines) {
        const event = JSON.parse(line) as { id: string; type: string; created: number; data: { object: { id: string } } }
        const { body, header } = yield* signed({
          id: event.id, type: event.type, createdS: event.created, objectId: event.data.object.id === "pi_T001" ? id : event.data.object.id
        })
        const bad = event.id === "evt_2"
        const received = yield* Effect.exit(webhooks.receive(body, bad ? header.replace(/.$/, (last) => last === "0" ? "1" : "0") : header))
        assert.strictEqual(Exit.isFailure(received), bad)
        yield* webhooks.settleDue
      }
      assert.strictEqual((yield* debit.row).state, "succeeded")
      assert.strictEqual(yield* payments(debit.request), 1)
      assert.strictEqual((yield* debit.events).filter(({ to }) => to === "succeeded").length, 1, "one booking")
      assert.deepStrictEqual(yield* Effect.forEach(["evt_1", "evt_0", "evt_2", "evt_3"], verdict), ["settled", "unchanged", undefined, "unknown_object"])
      assert.deepStrictEqual((yield* unknown).map(({ id, reason }) => [id, reason]), [["pi_TUNKNOWN", "missing_there"]])
      const inbox = yield* WebhookInbox
      assert.deepStrictEqual((yield* inbox.recent(10)).filter(({ event }) => event.id === "evt_1").map(({ deliveries }) => deliveries), [2])
    }))

    live("processing to succeeded, whatever the event said", Effect.gen(function*() {
      const id = yield* accepted
      yield* settleAtStripe(id, "succeeded")
      assert.isTrue(yield* deliver({ id: "evt_a", type: "payment_intent.payment_failed", objectId: id }))
      assert.strictEqual((yield* debit.row).state, "succeeded")
      assert.strictEqual(yield* payments(debit.request), 1)
    }))

    live("processing to declined, and its room goes back", Effect.gen(function*() {
      const id = yield* accepted
      assert.strictEqual(yield* reserved, 1000n)
      yield* settleAtStripe(id, "failed")
      yield* deliver({ id: "evt_a", type: "payment_intent.payment_failed", objectId: id })
      assert.strictEqual((yield* debit.row).state, "declined")
      assert.strictEqual(yield* reserved, 0n)
      assert.strictEqual(yield* payments(debit.request), 0)
      assert.isFalse(yield* deliver({ id: "evt_a", type: "payment_intent.payment_failed", objectId: id }))
    }))

    live("a poll comes to the same end without an event, and the event after it changes nothing", Effect.gen(function*() {
      const id = yield* accepted
      yield* settleAtStripe(id, "succeeded")
      yield* advance("11 minutes")
      yield* (yield* Sweeper).sweepOnce
      assert.strictEqual((yield* debit.row).state, "succeeded")
      const before = yield* debit.events
      yield* deliver({ id: "evt_a", type: "payment_intent.succeeded", objectId: id })
      assert.strictEqual(yield* verdict("evt_a"), "unchanged")
      assert.deepStrictEqual(yield* debit.events, before)
    }))

    live("a customer who authenticates is paid for; one who fails is declined, and nothing is asked again", Effect.gen(function*() {
      for (const [customer, outcome, state] of [["cust_yes", "succeeded", "succeeded"], ["cust_no", "failed", "declined"]] as const) {
        const { request, row, run } = charged("pm_card_threeDSecure2Required", customer)
        assert.strictEqual((yield* run)._tag, "RequiresAction")
        const id = (yield* row).paymentIntentId!
        yield* deliver({ id: `evt_${customer}_early`, type: "payment_intent.payment_failed", objectId: id })
        assert.deepStrictEqual([(yield* row).state, yield* verdict(`evt_${customer}_early`)], ["requires_action", "unchanged"])
        // The customer comes back and is asked by the bank.
        yield* elsewhere("POST", `/v1/payment_intents/${id}/confirm`, { payment_method: "pm_card_threeDSecure2Required" })
        yield* deliver({ id: `evt_${customer}_asked`, type: "payment_intent.requires_action", objectId: id })
        assert.deepStrictEqual([(yield* row).state, yield* verdict(`evt_${customer}_asked`)], ["requires_action", "unchanged"])
        assert.isTrue(yield* settleAtStripe(id, outcome))
        const confirms = (yield* (yield* StripeSim).requests).filter(({ path }) => path.endsWith("/confirm")).length
        yield* deliver({ id: `evt_${customer}`, type: "payment_intent.updated", objectId: id })
        assert.strictEqual((yield* row).state, state)
        assert.strictEqual(yield* payments(request), outcome === "succeeded" ? 1 : 0)
        assert.strictEqual((yield* (yield* StripeSim).requests).filter(({ path }) => path.endsWith("/confirm")).length, confirms)
      }
    }))

    live("what waited for its customer and is canceled at Stripe is over; its room goes back with the next sweep", Effect.gen(function*() {
      const { row, run } = charged("pm_card_threeDSecure2Required")
      yield* run
      const id = (yield* row).paymentIntentId!
      yield* elsewhere("POST", `/v1/payment_intents/${id}/cancel`)
      yield* deliver({ id: "evt_a", type: "payment_intent.canceled", objectId: id })
      assert.strictEqual((yield* row).state, "canceled")
      yield* (yield* Sweeper).sweepOnce
      assert.strictEqual(yield* reserved, 0n)
    }))

    live("a declined charge that somebody pays in the Dashboard is paid, and takes its room again", Effect.gen(function*() {
      const { request, row, run } = charged("pm_card_visa_chargeDeclined")
      assert.strictEqual((yield* run)._tag, "Declined")
      assert.strictEqual(yield* reserved, 0n)
      const id = (yield* row).paymentIntentId!
      yield* elsewhere("POST", `/v1/payment_intents/${id}/confirm`, { payment_method: "pm_card_visa" })
      yield* deliver({ id: "evt_a", type: "payment_intent.succeeded", objectId: id })
      assert.deepStrictEqual([(yield* row).state, yield* payments(request), yield* reserved], ["succeeded", 1, 1000n])
    }))

    live("a worker that died after confirm needs no lease to run out", Effect.gen(function*() {
      const { request, row, run } = charged("pm_card_visa")
      yield* (yield* Crash).at("after-confirm")
      assert.isTrue(Exit.hasDies(yield* Effect.exit(run)))
      assert.strictEqual((yield* row).state, "attached")
      yield* deliver({ id: "evt_a", type: "payment_intent.succeeded", objectId: (yield* row).paymentIntentId! })
      assert.deepStrictEqual([(yield* row).state, yield* payments(request)], ["succeeded", 1])
    }))

    live("a charge in work is left to its worker, who finds it done", Effect.gen(function*() {
      const { request, row, run } = charged("pm_card_visa")
      const hold = yield* (yield* Crash).holdAt("before-confirm")
      const worker = yield* Effect.forkChild(run)
      yield* hold.arrived
      const id = (yield* row).paymentIntentId!
      yield* deliver({ id: "evt_created", type: "payment_intent.created", objectId: id })
      assert.deepStrictEqual([yield* verdict("evt_created"), (yield* row).state], ["in_work", "attached"])
      yield* elsewhere("POST", `/v1/payment_intents/${id}/confirm`, { payment_method: "pm_card_visa" })
      yield* deliver({ id: "evt_paid", type: "payment_intent.succeeded", objectId: id })
      assert.strictEqual((yield* row).state, "succeeded")
      yield* hold.go
      assert.strictEqual((yield* Fiber.join(worker))._tag, "Succeeded")
      assert.strictEqual(yield* payments(request), 1)
    }))

    live("an object that differs from its row is held for a person", Effect.gen(function*() {
      const { row, run } = charged("pm_card_visa")
      yield* (yield* Crash).at("after-attach")
      yield* Effect.exit(run)
      const id = (yield* row).paymentIntentId!
      yield* elsewhere("POST", `/v1/payment_intents/${id}`, { amount: "900" })
      yield* elsewhere("POST", `/v1/payment_intents/${id}/confirm`, { payment_method: "pm_card_visa" })
      yield* deliver({ id: "evt_a", type: "payment_intent.succeeded", objectId: id })
      assert.strictEqual(yield* verdict("evt_a"), "quarantined")
      assert.include((yield* row).quarantine ?? "", "amount is 9.00 usd, not 10.00 usd")
      assert.strictEqual((yield* row).state, "attached")
    }))

    live("objects of nobody are listed: another program's, a forgotten row's, a second payment's", Effect.gen(function*() {
      const { request, row, run } = charged("pm_card_visa")
      yield* run
      const pay = (metadata: Record<string, string>) =>
        Effect.map(
          elsewhere("POST", "/v1/payment_intents", {
            amount: "1000", currency: "usd", customer: "cus_1", payment_method: "pm_card_visa", confirm: "true", off_session: "true", ...metadata
          }),
          (intent) => String(intent["id"])
        )
      const foreign = yield* pay({})
      const forgotten = yield* pay({ "metadata[charge_key]": chargeFor("nobody", "2026-07").chargeKey })
      const second = yield* pay({ "metadata[charge_key]": request.chargeKey })
      for (const id of [foreign, forgotten, second]) yield* deliver({ id: `evt_${id}`, type: "payment_intent.succeeded", objectId: id })
      const listed = new Map((yield* unknown).map(({ id, reason }) => [id, reason]))
      assert.deepStrictEqual([listed.get(foreign), listed.get(forgotten), listed.get(second)], ["foreign", "missing_here", "not_attached"])
      const paidTo = (yield* row).outcome
      assert.strictEqual(paidTo?._tag === "Succeeded" ? paidTo.paymentIntentId : "", (yield* row).paymentIntentId)
      // An unpaid object of another program is none of our business.
      const unpaid = String((yield* elsewhere("POST", "/v1/payment_intents", { amount: "500", currency: "usd" }))["id"])
      yield* deliver({ id: "evt_unpaid", type: "payment_intent.created", objectId: unpaid })
      assert.strictEqual(yield* verdict("evt_unpaid"), "ignored")
      // Another account's events change nothing, whatever they name.
      yield* deliver({ id: "evt_connect", type: "payment_intent.succeeded", objectId: foreign, account: "acct_other" })
      assert.strictEqual(yield* verdict("evt_connect"), "ignored")
    }))

    live("a refund that was made elsewhere shows beside the row, as it stands now", Effect.gen(function*() {
      const { request, row, run } = charged("pm_card_visa")
      yield* run
      const { outcome, paymentIntentId } = yield* row
      const chargeId = outcome?._tag === "Succeeded" ? outcome.chargeId! : ""
      const refund = yield* elsewhere("POST", "/v1/refunds", { payment_intent: paymentIntentId!, amount: "400" })
      yield* deliver({ id: "evt_a", type: "charge.refunded", objectId: chargeId })
      yield* deliver({ id: "evt_b", type: "refund.created", objectId: String(refund["id"]) })
      const sightings = yield* Sightings
      assert.deepStrictEqual(
        (yield* sightings.movements(request.chargeKey)).map(({ amountMinor, id, kind, status }) => [id, kind, amountMinor, status]),
        [[String(refund["id"]), "refund", 400, "succeeded"]]
      )
      assert.strictEqual((yield* row).state, "succeeded", "a refund reopens nothing")
      assert.deepStrictEqual([yield* verdict("evt_a"), yield* verdict("evt_b")], ["noted", "noted"])
    }))

    live("an event that cannot be dealt with now is dealt with later", Effect.gen(function*() {
      const id = yield* accepted
      yield* settleAtStripe(id, "succeeded")
      const sim = yield* StripeSim
      yield* sim.faults.add({ match: { method: "GET", path: "/v1/payment_intents/*", times: "always" }, action: { kind: "reset", at: "before" } })
      yield* deliver({ id: "evt_a", type: "payment_intent.succeeded", objectId: id })
      assert.isNull(yield* verdict("evt_a"))
      assert.strictEqual((yield* debit.row).state, "processing")
      yield* sim.faults.clear
      yield* advance("2 minutes")
      assert.strictEqual((yield* (yield* Webhooks).settleDue).done, 1)
      assert.strictEqual((yield* debit.row).state, "succeeded")
    }))

    live("the one-call interface: an event about a charge finds its row", Effect.gen(function*() {
      const { request, row, run } = charged("tok_visa")
      yield* (yield* Crash).at("after-confirm")
      yield* Effect.exit(run)
      const charges = yield* elsewhere("GET", "/v1/charges?limit=1")
      const id = String((charges["data"] as ReadonlyArray<{ readonly id: string }>)[0]!.id)
      yield* deliver({ id: "evt_a", type: "charge.succeeded", objectId: id })
      assert.deepStrictEqual([(yield* row).state, yield* payments(request)], ["succeeded", 1])
    }), watchWorld(database, StripeGateway.layerChargesWith))
  })
}

describe("webhooks and the trail", () => {
  it.live("nothing of a refused call is stored", () =>
    Effect.gen(function*() {
      const webhooks = yield* Webhooks
      const sql = yield* SqlClient.SqlClient
      const { body, header } = yield* signed({ id: "evt_bad", type: "payment_intent.succeeded", objectId: "pi_1" }, "whsec_of_somebody_else_entirely")
      const error = yield* Effect.flip(webhooks.receive(body, header))
      assert.strictEqual(error._tag, "WebhookRefused")
      assert.deepStrictEqual(yield* sql`select * from purser.webhook_events`, [])
      assert.notInclude(error.message, "whsec")
      assert.notInclude(error.message, header.slice(20))
    }).pipe(Effect.provide(watchWorld(TestDatabase.layerPglite))))
})
