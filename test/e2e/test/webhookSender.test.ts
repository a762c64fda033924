/**
 * The simulator sends its events by itself, over HTTP and signed, to a mounted route: repeated, twinned, reordered, late,
 * badly signed, changed on the way. What the ledger says in the end is what the simulator's books say.
 */
import { NodeHttpServer } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Ledger, Sightings, WebhookInbox } from "@purser/core"
import { ChargePipeline, WebhookHttp, Webhooks } from "@purser/engine"
import * as TestDatabase from "@purser/postgres/TestDatabase"
import { StripeSim } from "@purser/stripe-sim"
import { chargeFor } from "@purser/testkit"
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { createServer } from "node:http"
import { elsewhere, watchWorld, webhookSecret } from "../src/Watch.ts"
import { openCap, payments } from "../src/World.ts"

const route = "/hooks/stripe"
const served = HttpRouter.serve(WebhookHttp.layerRoute(route), { disableListenLog: true, disableLogger: true }).pipe(
  Layer.provideMerge(NodeHttpServer.layer(() => createServer(), { host: "127.0.0.1", port: 0 }))
)
const world = served.pipe(Layer.provideMerge(watchWorld(TestDatabase.layerPostgres)))

/** Everything that was sent has been answered, and everything that was kept has been dealt with. */
const quiet = Effect.gen(function*() {
  const sim = yield* StripeSim
  yield* sim.webhooks.release
  yield* sim.webhooks.settled
  yield* (yield* Webhooks).settleDue
})

const endpoint = Effect.gen(function*() {
  const { address } = yield* HttpServer.HttpServer
  yield* (yield* StripeSim).webhooks.add({ url: `${HttpServer.formatAddress(address)}${route}`, secret: webhookSecret })
})

const charge = (customer: string, paymentMethod: string) => {
  const request = chargeFor(customer, "2026-07", { paymentMethod })
  return {
    request,
    run: Effect.flatMap(ChargePipeline, (pipeline) => pipeline.charge(request)),
    row: Effect.flatMap(Ledger, (ledger) => Effect.map(ledger.find(request.chargeKey), (row) => row!))
  }
}

describe("events that Stripe sends", () => {
  it.live("twice, as twins, out of order, late, badly signed and changed: the rows end as the books", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim
      yield* endpoint
      yield* openCap(chargeFor("any", "2026-07"))
      yield* sim.webhooks.addFaults(
        { match: { type: "payment_intent.processing", times: "always" }, action: { kind: "repeat", times: 2 } },
        { match: { type: "payment_intent.succeeded", times: "always" }, action: { kind: "twin" } },
        { match: { type: "payment_intent.succeeded", nth: 1, times: 2 }, action: { kind: "reorder", behind: 2 } },
        { match: { type: "payment_intent.created", nth: 1 }, action: { kind: "wrongSignature" } },
        { match: { type: "payment_intent.created", nth: 2 }, action: { kind: "tampered" } },
        { match: { type: "payment_intent.created", nth: 3 }, action: { kind: "timestamp", offsetMs: -3_600_000 } },
        { match: { type: "payment_intent.created", nth: 4 }, action: { kind: "timestamp", offsetMs: 3_600_000 } }
      )
      const debits = ["d1", "d2", "d3", "d4"].map((customer) => charge(customer, "pm_usBankAccount_processing"))
      const cards = ["c1", "c2"].map((customer) => charge(customer, "pm_card_visa"))
      const declined = charge("n1", "pm_card_visa_chargeDeclined")
      yield* Effect.forEach([...debits, ...cards, declined], ({ run }) => run, { concurrency: 3 })
      for (const [index, { row }] of debits.entries()) yield* sim.settle((yield* row).paymentIntentId!, index % 2 === 0 ? "succeeded" : "failed")
      yield* quiet
      assert.deepStrictEqual(yield* Effect.forEach(debits, ({ row }) => Effect.map(row, ({ state }) => state)), ["succeeded", "declined", "succeeded", "declined"])
      for (const { request, row } of [...debits, ...cards, declined]) {
        assert.strictEqual(yield* payments(request), (yield* row).state === "succeeded" ? 1 : 0)
      }
      const deliveries = yield* sim.webhooks.deliveries
      const refused = deliveries.filter(({ status }) => status !== 200)
      assert.deepStrictEqual(refused.map(({ faults, status }) => [faults, status]).sort(), [
        [["tampered"], 400], [["timestamp"], 400], [["timestamp"], 400], [["wrongSignature"], 400]
      ])
      const inbox = yield* WebhookInbox
      const kept = yield* inbox.recent(1000)
      assert.isTrue(kept.every(({ verdict }) => verdict !== null && verdict !== "unknown_object"))
      assert.strictEqual(kept.length, new Set(deliveries.filter(({ status }) => status === 200).map(({ eventId }) => eventId)).size)
      assert.strictEqual(kept.reduce((sum, { deliveries }) => sum + deliveries, 0), deliveries.filter(({ status }) => status === 200).length)
      // Each attempt at the same event is signed anew; what was refused before is believed once it is signed as it should be.
      const first = refused.find(({ faults }) => faults.includes("wrongSignature"))!
      assert.isTrue(yield* sim.webhooks.resend(first.eventId))
      yield* quiet
      assert.strictEqual((yield* inbox.recent(1000)).find(({ event }) => event.id === first.eventId)?.deliveries, 1)
    }).pipe(Effect.provide(world)), 60_000)

  it.live("a dispute shows beside the row, and so does how it ends; the charge stays paid", () =>
    Effect.gen(function*() {
      yield* endpoint
      yield* openCap(chargeFor("any", "2026-07"))
      const { request, row, run } = charge("angry", "pm_card_createDispute")
      assert.strictEqual((yield* run)._tag, "Succeeded")
      yield* quiet
      const sightings = yield* Sightings
      const [dispute] = yield* sightings.movements(request.chargeKey)
      assert.deepStrictEqual([dispute?.kind, dispute?.amountMinor, dispute?.status, dispute?.reason], ["dispute", 1000, "needs_response", "fraudulent"])
      yield* elsewhere("POST", `/v1/disputes/${dispute!.id}/close`)
      yield* quiet
      assert.deepStrictEqual((yield* sightings.movements(request.chargeKey)).map(({ id, status }) => [id, status]), [[dispute!.id, "lost"]])
      assert.strictEqual((yield* row).state, "succeeded")
    }).pipe(Effect.provide(world)), 60_000)
})
