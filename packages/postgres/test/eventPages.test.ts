/** The trail in its pages: every line is found by its charge, by its position, and an object's charge by the object. */
import { assert, layer } from "@effect/vitest"
import { ChargeSearch, type ClaimedCharge, Declined, EventLog, Ledger, RunLedger, Succeeded } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { eventPageMax } from "../src/internal/eventPages.ts"
import { PgChargeSearch } from "../src/PgChargeSearch.ts"
import { PgEventLog } from "../src/PgEventLog.ts"
import { PgLedger } from "../src/PgLedger.ts"
import { PgRunLedger } from "../src/PgRunLedger.ts"
import * as TestDatabase from "../src/TestDatabase.ts"

const claimed = (customer: string, object?: (key: string) => string) =>
  Effect.gen(function*() {
    const ledger = yield* Ledger
    const request = chargeFor(customer, "2026-05")
    const answer = yield* ledger.claim(request, "w1", object === undefined ? {} : { object: { id: object(request.chargeKey), paymentMethod: "pm" } })
    return answer._tag === "Claimed" ? answer.charge : assert.fail(answer._tag)
  })
const attach = ({ generation, lease }: ClaimedCharge, paymentIntentId: string) =>
  Effect.flatMap(Ledger, (ledger) => ledger.attach({ lease, generation, paymentIntentId, paymentMethod: "pm" }))
/** Pays the attached object; `found` is what the processor calls it. */
const pay = ({ attempt, lease, request }: ClaimedCharge, attached: string, found = attached) =>
  Effect.flatMap(Ledger, (ledger) =>
    ledger.settle({
      lease, attempt, paymentIntentId: attached,
      outcome: new Succeeded({ chargeKey: lease.chargeKey, alreadySettled: false, paymentIntentId: found, chargeId: "ch", amountReceivedMinor: request.amountMinor })
    }))
const found = (paymentIntentId: string) =>
  Effect.flatMap(ChargeSearch, (search) => Effect.map(search.find({ paymentIntentId }, null, 10), ({ charges }) => charges.map(({ customerId }) => customerId)))

interface Line {
  readonly charge_key: string
  readonly seq: number
  readonly to_state: string
  readonly position: bigint
}

for (const [name, database] of TestDatabase.layers) {
  const stores = Layer.mergeAll(PgLedger.layer, PgRunLedger.layer, PgChargeSearch.layer, PgEventLog.layer).pipe(Layer.provideMerge(database))
  layer(stores, { timeout: 120_000 })(`pages of the trail on ${name}`, (it) => {
    it.effect("an object's charge is found by the object that was made for it, and by the one that was found", () =>
      Effect.gen(function*() {
        const made = yield* claimed("made")
        assert.strictEqual((yield* attach(made, "pi_made"))._tag, "Attached")
        assert.strictEqual((yield* pay(made, "pi_made", "pi_found"))._tag, "Settled")
        const keyed = yield* claimed("keyed", (key) => `one:${key}`)
        const named = yield* claimed("named", (key) => `one:named-${key.slice(1)}`)
        // Its name begins with another's key.
        const foreign = yield* claimed("foreign", (key) => `${keyed.lease.chargeKey}:${key}`)
        for (const [object, customers] of [
          ["pi_made", ["made"]],
          ["pi_found", ["made"]],
          [keyed.paymentIntentId!, ["keyed"]],
          [named.paymentIntentId!, ["named"]],
          [foreign.paymentIntentId!, ["foreign"]],
          [`two:${keyed.lease.chargeKey}`, []],
          [keyed.lease.chargeKey, []]
        ] as const) {
          assert.deepStrictEqual(yield* found(object), [...customers], object)
        }
        // What was found at a settlement, whatever its name, is remembered when the charge is reopened.
        const found2 = yield* claimed("again", (key) => `one:${key}:1`)
        const second = `one:${found2.lease.chargeKey}:2`
        yield* (yield* Ledger).settle({
          lease: found2.lease, attempt: 1, paymentIntentId: found2.paymentIntentId,
          outcome: new Declined({ chargeKey: found2.lease.chargeKey, alreadySettled: false, paymentIntentId: second, code: "card_declined", declineCode: null, adviceCode: null, declinedChargeId: null, detail: "no" })
        })
        yield* (yield* Ledger).reopen({ chargeKeys: [found2.lease.chargeKey], from: ["declined"], actor: "ada", reason: "again" })
        assert.deepStrictEqual([yield* found(second), yield* found(found2.paymentIntentId!)], [["again"], ["again"]])
        // By a name that it had before, too.
        const ledger = yield* Ledger
        yield* ledger.renew({ lease: keyed.lease, generation: 1, paymentIntentId: keyed.paymentIntentId! })
        assert.strictEqual((yield* attach({ ...keyed, generation: 2 }, "pi_second"))._tag, "Attached")
        assert.deepStrictEqual([yield* found(keyed.paymentIntentId!), yield* found("pi_second")], [["keyed"], ["keyed"]])
        const sql = yield* SqlClient.SqlClient
        const noted = yield* sql.unsafe<{ readonly object: string }>("select object from purser.charge_objects order by 1")
        assert.deepStrictEqual(noted.map(({ object }) => object), [foreign.paymentIntentId!, named.paymentIntentId!, second, "pi_found", "pi_made", "pi_second"].toSorted())
      }))

    it.effect("lines of one statement are a page, and each is found by its charge as the whole trail has it", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const sql = yield* SqlClient.SqlClient
        const before = yield* sql.unsafe<{ readonly page: bigint }>("select page from purser.charge_event_pages")
        const charges = yield* Effect.forEach(Array.from({ length: 50 }, (_, index) => `paged-${index}`), (customer) => claimed(customer), { concurrency: "unbounded" })
        yield* Effect.forEach(charges.slice(0, 40), (charge) => attach(charge, `pi_${charge.lease.chargeKey}`), { concurrency: "unbounded" })
        yield* Effect.forEach(charges.slice(0, 30), (charge) => pay(charge, `pi_${charge.lease.chargeKey}`), { concurrency: "unbounded" })
        const pages = yield* sql.unsafe<{ readonly page: bigint }>("select page from purser.charge_event_pages")
        assert.isAtMost(pages.length - before.length, 6)
        const lines = yield* sql.unsafe<Line>("select charge_key, seq, to_state, position from purser.charge_events order by position")
        for (const { lease: { chargeKey } } of charges) {
          const trail = (yield* ledger.events(chargeKey)).map((event) => [event.sequence, event.to])
          assert.deepStrictEqual(trail, lines.filter((line) => line.charge_key === chargeKey).map((line) => [line.seq, line.to_state]), chargeKey)
        }
        assert.strictEqual(new Set(lines.map(({ position }) => position)).size, lines.length)
      }))

    it.effect("the plan of a run has as many pages as its lines need, and a follower is told each line once", () =>
      Effect.gen(function*() {
        const [runs, ledger, log] = [yield* RunLedger, yield* Ledger, yield* EventLog]
        const advanced = Effect.gen(function*() {
          // Places wait for older transactions, also those of other databases of the server.
          for (let n = 0; n < 50; n++) yield* log.advance(1000)
          return (yield* log.head).sequence
        })
        const from = yield* advanced
        const size = eventPageMax + 10
        const requests = Array.from({ length: size }, (_, index) => chargeFor(`planned-${index}`, "2026-06"))
        yield* runs.begin({ runId: "paged", source: "test" })
        yield* runs.stage("paged", requests.map((request, index) => ({ line: index + 1, chargeKey: request.chargeKey, request })))
        yield* runs.plan("paged")
        const sql = yield* SqlClient.SqlClient
        const pages = yield* sql.unsafe<{ readonly lines: number }>(
          "select cardinality(keys) as lines from purser.charge_event_pages where 'planned' = any(to_states) order by page"
        )
        assert.deepStrictEqual(pages.map(({ lines }) => lines), [eventPageMax, 10])
        for (const request of [requests[0]!, requests[size - 1]!]) {
          assert.deepStrictEqual((yield* ledger.events(request.chargeKey)).map(({ sequence, to }) => [sequence, to]), [[1, "planned"]])
        }
        assert.strictEqual((yield* advanced) - from, size)
        const told = yield* log.read({ epoch: null, sequence: from }, 10_000)
        assert.deepStrictEqual(told.map(({ chargeKey }) => chargeKey).toSorted(), requests.map(({ chargeKey }) => chargeKey).toSorted())
      }))

    it.effect("a page that would run into the next one is refused", () =>
      Effect.gen(function*() {
        const sql = yield* SqlClient.SqlClient
        const error = yield* Effect.flip(sql.unsafe(`insert into purser.charge_event_pages (page, at, keys, seqs, to_states, attempts)
          select purser.next_event_page(), purser.now(), array_agg(i::text), array[1], array['planned'], array[1] from generate_series(0, ${eventPageMax}) as i`))
        assert.match(String((error.reason.cause as Error).message), /keys_check/)
      }))
  })
}
