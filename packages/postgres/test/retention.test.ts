/** What retention leaves, however old it is: runs of which something may still come, events that nobody has dealt with, and what is young. */
import { assert, layer } from "@effect/vitest"
import { type AccountPayment, type ChargeRequest, Declined, DunningBook, Ledger, ReconcileBook, RequiresAction, RunLedger, RunRegistry, Succeeded, WebhookInbox } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { Duration, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import * as DatabaseClock from "../src/DatabaseClock.ts"
import { PgDunningBook } from "../src/PgDunningBook.ts"
import * as Calls from "../src/internal/callSql.ts"
import { booleans, double, doubles, integer, integers, texts } from "../src/internal/params.ts"
import { PgLedger } from "../src/PgLedger.ts"
import { PgReconcileBook } from "../src/PgReconcileBook.ts"
import { PgRetention, type RetentionAges } from "../src/PgRetention.ts"
import { PgRunLedger } from "../src/PgRunLedger.ts"
import { PgRunRegistry } from "../src/PgRunRegistry.ts"
import { PgWebhookInbox } from "../src/PgWebhookInbox.ts"
import * as TestDatabase from "../src/TestDatabase.ts"

const never = Duration.days(9999)
const none: RetentionAges = { engine: never, runs: never, dunning: never, webhooks: never }
const stores = Layer.mergeAll(PgRetention.layer, PgLedger.layer, PgRunLedger.layer, PgRunRegistry.layer, PgWebhookInbox.layer, PgReconcileBook.layer, PgDunningBook.layer)

/** A run of one charge, planned and begun by somebody. */
const runOf = Effect.fnUntraced(function*(runId: string, request: ChargeRequest) {
  const book = yield* RunLedger
  yield* book.begin({ runId, source: runId })
  yield* book.stage(runId, [{ line: 1, chargeKey: request.chargeKey, request }])
  yield* book.plan(runId)
  yield* (yield* RunRegistry).register({ runId, name: runId, state: "running", definition: "plain", params: null, options: null, actor: "test" })
})
const ended = (runId: string) => Effect.flatMap(RunRegistry, (runs) => runs.change({ runId, from: ["running"], to: "finished", actor: "test" }))

/** The charge is paid, declined, or waits for its customer. */
const settled = Effect.fnUntraced(function*(request: ChargeRequest, end: "paid" | "declined" | "waits") {
  const ledger = yield* Ledger
  const answer = yield* ledger.claim(request, "w")
  if (answer._tag !== "Claimed") return yield* Effect.die(new Error(`expected Claimed, got ${answer._tag}`))
  const { attempt, generation, lease } = answer.charge
  const { chargeKey } = request
  const paymentIntentId = `pi_${chargeKey}`
  const common = { chargeKey, alreadySettled: false, paymentIntentId }
  yield* ledger.attach({ lease, generation, paymentIntentId, paymentMethod: "pm_card_visa" })
  const outcome = end === "paid" ? new Succeeded({ ...common, chargeId: "ch_1", amountReceivedMinor: request.amountMinor })
    : end === "declined" ? new Declined({ ...common, code: "card_declined", declineCode: null, adviceCode: null, declinedChargeId: null, detail: "no" })
    : new RequiresAction({ ...common, detail: "the bank asks" })
  yield* ledger.settle({ lease, attempt, paymentIntentId, outcome })
  return lease
})

for (const [name, database] of TestDatabase.layers) {
  layer(stores.pipe(Layer.provideMerge(database)), { timeout: 120_000, excludeTestServices: true })(`retention on ${name}`, (it) => {
    it.effect("leaves a run of which a charge may still move, waits for a person or is in conflict, and one that goes on", () => Effect.gen(function*() {
      const [book, registry, retention] = [yield* RunLedger, yield* RunRegistry, yield* PgRetention]
      const request = (customer: string, amountMinor = 1000) => chargeFor(customer, "2026-01", { amountMinor })
      const all = ["paid", "waits", "aside", "open", "again"]
      for (const run of all) yield* runOf(run, request(run))
      for (const run of ["paid", "again"]) yield* settled(request(run), "paid")
      yield* settled(request("waits"), "waits")
      yield* (yield* Ledger).quarantine(yield* settled(request("aside"), "paid"), "another amount")
      yield* (yield* Ledger).claim(request("open"), "w")
      // The same charge for another amount.
      yield* runOf("conflict", request("paid", 900))
      for (const run of ["paid", "waits", "aside", "open", "conflict"]) yield* ended(run)
      // Its book was closed, and somebody goes on with it.
      yield* book.finish("again", "finished")
      yield* DatabaseClock.advance("40 days")
      const kept = Effect.map(registry.list({ limit: 100 }), (runs) => runs.map(({ runId }) => runId).toSorted())
      const lines = Effect.forEach([...all, "conflict"], (run) => book.lastLine(run))
      const counted = yield* retention.count({ ...none, runs: Duration.days(39) })
      assert.deepStrictEqual([counted.runs, counted.runRows, yield* lines], [1, 1, [1, 1, 1, 1, 1, 1]])
      assert.deepStrictEqual(yield* retention.prune({ ...none, runs: Duration.days(39) }), counted)
      assert.deepStrictEqual([yield* kept, yield* lines], [["again", "aside", "conflict", "open", "waits"], [0, 1, 1, 1, 1, 1]])
    }))

    it.effect("leaves a dunning case whose workflow has not seen its end, also of a charge that is paid since", () => Effect.gen(function*() {
      const [book, ledger, retention] = [yield* DunningBook, yield* Ledger, yield* PgRetention]
      const request = chargeFor("followed", "2026-01")
      const act = { actor: "ada", reason: "test" }
      const { chargeKey } = request
      yield* settled(request, "declined")
      const opened = yield* book.open(chargeKey, act)
      const caseId = opened._tag === "Opened" ? opened.case.caseId : ""
      yield* book.close(caseId, "new_method", act)
      yield* ledger.reopen({ chargeKeys: [chargeKey], from: ["declined"], ...act })
      yield* settled(request, "paid")
      yield* DatabaseClock.advance("40 days")
      const prune = Effect.map(retention.prune({ ...none, dunning: Duration.days(39) }), ({ dunningCases }) => dunningCases)
      const before = yield* prune
      yield* book.finished(caseId)
      assert.deepStrictEqual([before, yield* prune], [0, 1])
    }))

    it.effect("leaves an event that nobody has dealt with, and deletes nothing while it counts", () => Effect.gen(function*() {
      const [inbox, retention] = [yield* WebhookInbox, yield* PgRetention]
      for (const id of ["evt_done", "evt_due"]) yield* inbox.receive({ id, type: "t", createdMs: 0, account: null, subject: "payment", objectId: "pi_1" })
      yield* inbox.finish("evt_done", "settled", null)
      yield* DatabaseClock.advance("40 days")
      const ids = Effect.map(inbox.recent(10), (events) => events.map(({ event }) => event.id).toSorted())
      assert.deepStrictEqual([(yield* retention.count({ ...none, webhooks: Duration.days(39) })).webhookEvents, yield* ids], [1, ["evt_done", "evt_due"]])
      assert.deepStrictEqual([(yield* retention.prune({ ...none, webhooks: Duration.days(39) })).webhookEvents, yield* ids], [1, ["evt_due"]])
    }))

    it.effect("begins a reconciliation's book empty, and drops no other one that somebody came to within a day", () => Effect.gen(function*() {
      const book = yield* ReconcileBook
      const { billingPeriod, chargeKey, customerId, namespace } = chargeFor("booked", "2026-01")
      const object: AccountPayment = {
        id: "pi_1", status: "succeeded", amountMinor: 1000, amountReceivedMinor: 1000, currency: "usd", stripeCustomerId: "cus_1", createdMs: 0, chargeId: null, paymentMethod: null,
        identity: { chargeKey, customerId, billingPeriod, namespace, item: null, revision: 0, generation: 1 }
      }
      yield* book.add("old", [object])
      yield* DatabaseClock.advance("2 days")
      for (const id of ["young", "again"]) yield* book.add(id, [object])
      yield* book.begin("again")
      assert.deepStrictEqual((yield* Effect.forEach(["old", "young", "again"], (id) => book.objects(id, [chargeKey]))).map(({ length }) => length), [0, 1, 0])
    }))

    it.effect("leaves calls that are young, and takes no more of the old ones at once than it may", () => Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const { chargeKey } = chargeFor("called", "2026-01")
      const ages = [50, 41, 39].map((days) => days * 86_400_000)
      yield* sql.unsafe(Calls.keep, [
        texts(ages.map(() => chargeKey)), doubles(ages), texts(ages.map((age) => `call ${age}`)), texts(ages.map(() => "200")), texts(ages.map(() => null)), booleans(ages.map(() => false)), integers(ages.map(() => 7))
      ])
      const forget = Effect.andThen(
        sql.unsafe(Calls.forget, [double(40 * 86_400), integer(1)]), sql.unsafe<{ readonly left: number }>("select count(*)::int as left from purser.processor_calls")
      )
      assert.deepStrictEqual([...yield* forget, ...yield* forget, ...yield* forget].map(({ left }) => left), [2, 1, 1])
    }))
  })
}
