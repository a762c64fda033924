/** What every `RunLedger` must do together with its ledger. Each test has a run and a period of its own. */
import { type ChargeRequest, chargeTerms, Declined, Ledger, Rejected, RunLedger, type RunRow, SpendCap, Succeeded } from "@purser/core"
import { assert, layer as testLayer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { chargeFor } from "./chargeFor.ts"
import { StoreClock } from "./StoreClock.ts"

const longMs = 10 * 60_000

const rowsOf = (requests: ReadonlyArray<ChargeRequest>, firstLine = 2): ReadonlyArray<RunRow> =>
  requests.map((request, index) => ({ line: firstLine + index, chargeKey: request.chargeKey, request }))

const staged = Effect.fnUntraced(function*(runId: string, rows: ReadonlyArray<RunRow>) {
  const book = yield* RunLedger
  yield* book.begin({ runId, source: `${runId}.csv` })
  yield* book.stage(runId, rows)
})

const mustClaim = (request: ChargeRequest) =>
  Effect.flatMap(Ledger, (ledger) =>
    Effect.flatMap(ledger.claim(request, "w1"), (answer) =>
      answer._tag === "Claimed" ? Effect.succeed(answer.charge) : Effect.die(new Error(`expected Claimed, got ${answer._tag}`))))

const pay = Effect.fnUntraced(function*(request: ChargeRequest) {
  const ledger = yield* Ledger
  const charge = yield* mustClaim(request)
  const { chargeKey } = request
  const paymentIntentId = `pi_${chargeKey}`
  yield* ledger.attach({ lease: charge.lease, generation: charge.generation, paymentIntentId, paymentMethod: "pm_card_visa" })
  yield* ledger.settle({
    lease: charge.lease, attempt: charge.attempt, paymentIntentId,
    outcome: new Succeeded({ chargeKey, alreadySettled: false, paymentIntentId, chargeId: "ch_1", amountReceivedMinor: request.amountMinor })
  })
})

const linesOf = (rows: ReadonlyArray<{ readonly line: number }>) => rows.map((row) => row.line)
const plain = (rows: ReadonlyArray<RunRow>) => rows.map(({ chargeKey, line, request }) => ({ chargeKey, line, request: { ...request } }))

/** Runs the suite against a run book and its ledger and cap; the layer is built once. */
export const suite = <E>(name: string, layer: Layer.Layer<RunLedger | Ledger | SpendCap | StoreClock, E>): void =>
  testLayer(layer, { timeout: 120_000 })(`RunLedger: ${name}`, (it) => {
    it.effect("turns staged rows into obligations only when it plans", () =>
      Effect.gen(function*() {
        const book = yield* RunLedger
        const ledger = yield* Ledger
        const requests = Array.from({ length: 5 }, (_, index) => chargeFor(`plan-${index}`, "2011-01", { item: `i${index}`, amountMinor: 100 + index }))
        const rows = rowsOf(requests)
        yield* staged("plan", rows)
        assert.isUndefined(yield* ledger.find(requests[0]!.chargeKey))
        assert.deepStrictEqual(yield* book.pending("plan", 0, 10), [])
        assert.deepStrictEqual((yield* book.report("plan", 0, 10)).map((row) => row.state), Array.from({ length: 5 }, () => "staged"))
        assert.deepStrictEqual(yield* book.plan("plan"), { planned: 5, present: 0 })
        const record = yield* ledger.find(requests[0]!.chargeKey)
        assert.deepStrictEqual([record?.state, record?.attempt, { ...record?.request }], ["planned", 1, { ...requests[0]! }])
        const events = yield* ledger.events(requests[0]!.chargeKey)
        assert.deepStrictEqual(events.map((event) => [event.sequence, event.from, event.to]), [[1, null, "planned"]])
        assert.deepStrictEqual(plain(yield* book.pending("plan", 0, 10)), plain(rows))
      }))

    it.effect("lets a worker claim a planned row freshly", () =>
      Effect.gen(function*() {
        const book = yield* RunLedger
        const ledger = yield* Ledger
        const request = chargeFor("fresh-plan", "2011-02", { paymentMethod: null })
        yield* staged("fresh", rowsOf([request]))
        yield* book.plan("fresh")
        const otherAmount = yield* ledger.claim(chargeFor("fresh-plan", "2011-02", { paymentMethod: null, amountMinor: 999 }), "w2")
        assert.strictEqual(otherAmount._tag, "Conflict")
        const charge = yield* mustClaim(request)
        assert.deepStrictEqual([charge.resumed, charge.state, charge.attempt, charge.paymentMethod], [false, "claimed", 1, null])
        assert.deepStrictEqual((yield* ledger.events(request.chargeKey)).map((event) => event.to), ["planned", "claimed"])
        const other = yield* ledger.claim(chargeFor("fresh-plan", "2011-02", { paymentMethod: "pm_1" }), "w2")
        assert.strictEqual(other._tag, "Conflict")
      }))

    it.effect("drops what an unplanned run left, and keeps a planned one", () =>
      Effect.gen(function*() {
        const book = yield* RunLedger
        const requests = Array.from({ length: 3 }, (_, index) => chargeFor(`begin-${index}`, "2011-03"))
        yield* staged("begin", rowsOf(requests))
        yield* staged("begin", rowsOf(requests.slice(0, 2)))
        assert.deepStrictEqual(yield* book.plan("begin"), { planned: 2, present: 0 })
        yield* book.begin({ runId: "begin", source: "again" })
        yield* book.discard("begin")
        assert.deepStrictEqual(linesOf(yield* book.report("begin", 0, 10)), [2, 3])
      }))

    it.effect("keeps a line that it has, whoever stages it again: a process that stood still, or one that was not answered", () =>
      Effect.gen(function*() {
        const book = yield* RunLedger
        const rows = rowsOf(Array.from({ length: 3 }, (_, index) => chargeFor(`restaged-${index}`, "2011-03")))
        yield* staged("restaged", rows)
        yield* book.stage("restaged", rows.slice(0, 2))
        assert.deepStrictEqual(yield* book.plan("restaged"), { planned: 3, present: 0 })
        yield* staged("restaged", rows)
        assert.deepStrictEqual([yield* book.duplicates("restaged", 10), yield* book.lastLine("restaged")], [[], 4])
        assert.deepStrictEqual((yield* book.summary("restaged")).map((total) => [total.state, total.rows]), [["planned", 3]])
      }))

    it.effect("plans again without changing anything", () =>
      Effect.gen(function*() {
        const book = yield* RunLedger
        const ledger = yield* Ledger
        const requests = Array.from({ length: 3 }, (_, index) => chargeFor(`again-${index}`, "2011-04"))
        yield* staged("again", rowsOf(requests))
        yield* book.plan("again")
        assert.deepStrictEqual(yield* book.plan("again"), { planned: 0, present: 3 })
        assert.strictEqual((yield* ledger.events(requests[0]!.chargeKey)).length, 1)
      }))

    it.effect("plans each identity once when runs overlap at the same time", () =>
      Effect.gen(function*() {
        const book = yield* RunLedger
        const ledger = yield* Ledger
        const requests = Array.from({ length: 60 }, (_, index) => chargeFor(`overlap-${index}`, "2011-05"))
        yield* staged("overlap-a", rowsOf(requests))
        yield* staged("overlap-b", rowsOf(requests.toReversed()))
        const [a, b] = yield* Effect.all([book.plan("overlap-a"), book.plan("overlap-b")], { concurrency: "unbounded" })
        assert.deepStrictEqual([a.planned + b.planned, a.present + b.present], [60, 60])
        for (const request of requests.slice(0, 5)) assert.strictEqual((yield* ledger.events(request.chargeKey)).length, 1)
      }))

    it.effect("plans what was new a moment ago, and what no longer is, alike", () =>
      Effect.gen(function*() {
        const book = yield* RunLedger
        const ledger = yield* Ledger
        const [a, b, c] = ["new-a", "new-b", "new-c"].map((customer) => chargeFor(customer, "2011-05"))
        yield* staged("new", rowsOf([a!, b!]))
        assert.deepStrictEqual(yield* book.plan("new", true), { planned: 2, present: 0 })
        yield* staged("new-no-more", rowsOf([c!, b!]))
        assert.deepStrictEqual(yield* book.plan("new-no-more", true), { planned: 1, present: 1 })
        assert.deepStrictEqual((yield* ledger.events(b!.chargeKey)).map((event) => event.to), ["planned"])
        const requests = Array.from({ length: 60 }, (_, index) => chargeFor(`new-${index}`, "2011-05"))
        yield* staged("new-at-once-a", rowsOf(requests))
        yield* staged("new-at-once-b", rowsOf(requests.toReversed()))
        const plans = yield* Effect.all([book.plan("new-at-once-a", true), book.plan("new-at-once-b", true)], { concurrency: "unbounded" })
        assert.deepStrictEqual(plans.map(({ planned }) => planned).toSorted((x, y) => x - y), [0, 60])
      }))

    it.effect("names the rows of one identity, in order, up to a limit", () =>
      Effect.gen(function*() {
        const book = yield* RunLedger
        const [a, b, c] = ["dup-a", "dup-b", "dup-c"].map((customer) => chargeFor(customer, "2011-06", { item: "seat" }))
        yield* staged("duplicates", rowsOf([a!, b!, c!, b!, a!, b!]))
        const found = yield* book.duplicates("duplicates", 10)
        assert.deepStrictEqual(found.map((one) => [one.chargeKey, one.customerId, one.billingPeriod, one.item, one.lines]), [
          [a!.chargeKey, "dup-a", "2011-06", "seat", [2, 6]],
          [b!.chargeKey, "dup-b", "2011-06", "seat", [3, 5, 7]]
        ])
        assert.strictEqual((yield* book.duplicates("duplicates", 1)).length, 1)
      }))

    it.effect("forgets a discarded run", () =>
      Effect.gen(function*() {
        const book = yield* RunLedger
        yield* staged("discarded", rowsOf([chargeFor("discarded", "2011-07")]))
        yield* book.discard("discarded")
        assert.deepStrictEqual(yield* book.report("discarded", 0, 10), [])
        assert.deepStrictEqual(yield* book.totals("discarded"), [])
      }))

    it.effect("sums per namespace, period and currency, and tells what needs no more room: held, settled or in conflict", () =>
      Effect.gen(function*() {
        const book = yield* RunLedger
        const cap = yield* SpendCap
        const paid = chargeFor("sum-paid", "2011-08", { amountMinor: 70_000_000 })
        const requests = [
          paid,
          chargeFor("sum-b", "2011-08", { amountMinor: 99_999_999 }),
          chargeFor("sum-c", "2011-08", { amountMinor: 5_000, currency: "eur" }),
          chargeFor("sum-d", "2011-09", { amountMinor: 100 }),
          chargeFor("sum-e", "2011-09", { amountMinor: 21 })
        ]
        // The ledger holds other terms for the last one: it will not be charged.
        yield* (yield* Ledger).claim(chargeFor("sum-e", "2011-09", { amountMinor: 19 }), "sums")
        yield* cap.open({ ...paid, expectedMinor: 10n ** 12n, headroomPercent: 100 })
        yield* cap.reserve({ ...paid, chargeKey: paid.chargeKey, attempt: 1, amountMinor: paid.amountMinor })
        yield* pay(paid)
        yield* staged("sums", rowsOf(requests))
        const totals = (yield* book.totals("sums")).toSorted((x, y) => `${x.billingPeriod}${x.currency}`.localeCompare(`${y.billingPeriod}${y.currency}`))
        assert.deepStrictEqual(totals.map((total) => [total.billingPeriod, total.currency, total.rows, total.amountMinor, total.coveredMinor, total.presentRows]), [
          ["2011-08", "eur", 1, 5_000n, 0n, 0],
          ["2011-08", "usd", 2, 169_999_999n, 70_000_000n, 1],
          ["2011-09", "usd", 2, 121n, 21n, 1]
        ])
      }))

    it.effect("tells the terms of the rows that are asked for, also before they are planned", () =>
      Effect.gen(function*() {
        const book = yield* RunLedger
        const [a, b, c] = ["terms-a", "terms-b", "terms-c"].map((customer, index) => chargeFor(customer, "2011-10", { amountMinor: 100 + index, paymentMethod: index === 0 ? "pm_1" : null }))
        yield* staged("terms", rowsOf([a!, b!]))
        yield* staged("terms-elsewhere", rowsOf([c!]))
        const found = yield* book.termsOf("terms", [b!.chargeKey, c!.chargeKey, a!.chargeKey])
        assert.deepStrictEqual(new Map(found), new Map([a!, b!].map((request) => [request.chargeKey, chargeTerms(request)])))
        yield* book.plan("terms")
        assert.strictEqual((yield* book.termsOf("terms", [a!.chargeKey, b!.chargeKey])).size, 2)
        assert.strictEqual((yield* book.termsOf("terms", [])).size, 0)
      }))

    it.effect("pages by line", () =>
      Effect.gen(function*() {
        const book = yield* RunLedger
        const requests = Array.from({ length: 10 }, (_, index) => chargeFor(`page-${index}`, "2011-10"))
        yield* staged("pages", rowsOf(requests.slice(0, 6), 100))
        yield* book.stage("pages", rowsOf(requests.slice(6), 106))
        yield* book.plan("pages")
        assert.deepStrictEqual(linesOf(yield* book.pending("pages", 0, 4)), [100, 101, 102, 103])
        assert.deepStrictEqual(linesOf(yield* book.pending("pages", 103, 4)), [104, 105, 106, 107])
        assert.deepStrictEqual(linesOf(yield* book.report("pages", 107, 4)), [108, 109])
      }))

    it.effect("finds pending rows however far apart they are", () =>
      Effect.gen(function*() {
        const book = yield* RunLedger
        const lines = [3, 4_000, 4_001, 300_000]
        yield* staged("apart", lines.map((line) => {
          const request = chargeFor(`apart-${line}`, "2011-10")
          return { line, chargeKey: request.chargeKey, request }
        }))
        yield* book.plan("apart")
        assert.deepStrictEqual(linesOf(yield* book.pending("apart", 0, 2)), [3, 4_000])
        assert.deepStrictEqual(linesOf(yield* book.pending("apart", 4_000, 2)), [4_001, 300_000])
        assert.deepStrictEqual(linesOf(yield* book.pending("apart", 4_001, 10, 299_999)), [])
        assert.deepStrictEqual(linesOf(yield* book.pending("apart", 300_000, 10)), [])
      }))

    it.effect("lists as pending what is planned or ran out, and nothing that is held, settled, quarantined or in conflict", () =>
      Effect.gen(function*() {
        const book = yield* RunLedger
        const ledger = yield* Ledger
        const [free, heldOne, paid, odd, other] = ["p-free", "p-held", "p-paid", "p-odd", "p-conflict"].map((customer) => chargeFor(customer, "2011-11"))
        yield* mustClaim(chargeFor("p-conflict", "2011-11", { amountMinor: 5 }))
        yield* staged("pending", rowsOf([free!, heldOne!, paid!, odd!, other!]))
        yield* book.plan("pending")
        yield* mustClaim(heldOne!)
        yield* pay(paid!)
        const { lease } = yield* mustClaim(odd!)
        yield* ledger.quarantine(lease, "look")
        assert.deepStrictEqual(linesOf(yield* book.pending("pending", 0, 10)), [2])
        yield* StoreClock.advance(longMs)
        assert.deepStrictEqual(linesOf(yield* book.pending("pending", 0, 10)), [2, 3])
      }))

    it.effect("reports every row as it stands, and sums the same", () =>
      Effect.gen(function*() {
        const book = yield* RunLedger
        const ledger = yield* Ledger
        const period = "2011-12"
        const [before, paid, poor, refused, open, odd, conflict] = ["r-before", "r-paid", "r-poor", "r-refused", "r-open", "r-odd", "r-conflict"]
          .map((customer, index) => chargeFor(customer, period, { amountMinor: 1000 + index }))
        yield* pay(before!)
        yield* mustClaim(chargeFor("r-conflict", period, { amountMinor: 77 }))
        yield* staged("report", rowsOf([before!, paid!, poor!, refused!, open!, odd!, conflict!]))
        assert.deepStrictEqual(yield* book.plan("report"), { planned: 5, present: 2 })
        yield* pay(paid!)
        const common = (request: ChargeRequest) => ({ chargeKey: request.chargeKey, alreadySettled: false })
        const decline = yield* mustClaim(poor!)
        yield* ledger.settle({
          lease: decline.lease, attempt: 1, paymentIntentId: null,
          outcome: new Declined({ ...common(poor!), paymentIntentId: null, code: "card_declined", declineCode: "insufficient_funds", detail: "no funds" })
        })
        const refusal = yield* mustClaim(refused!)
        yield* ledger.settle({
          lease: refusal.lease, attempt: 1, paymentIntentId: null,
          outcome: new Rejected({ ...common(refused!), code: "cap_exceeded", detail: "does not fit" })
        })
        const { lease } = yield* mustClaim(odd!)
        yield* ledger.quarantine(lease, "amount differs")

        const report = yield* book.report("report", 0, 100)
        assert.deepStrictEqual(report.map((row) => [row.line, row.state, row.receivedMinor, row.settledBefore]), [
          [2, "succeeded", 1000, true],
          [3, "succeeded", 1001, false],
          [4, "declined", 0, false],
          [5, "rejected", 0, false],
          [6, "planned", 0, false],
          [7, "quarantined", 0, false],
          [8, "conflict", 0, false]
        ])
        assert.deepStrictEqual(report.slice(2, 6).map((row) => row.detail), ["no funds", "does not fit", null, "amount differs"])
        assert.match(report[6]!.detail!, /77 usd/)
        assert.strictEqual(report[1]!.paymentIntentId, `pi_${paid!.chargeKey}`)
        assert.deepStrictEqual({ ...report[3]!.request }, { ...refused! })

        const summary = (yield* book.summary("report")).toSorted((a, b) => a.state.localeCompare(b.state))
        assert.deepStrictEqual(summary.map((total) => [total.currency, total.state, total.rows, total.amountMinor, total.receivedMinor, total.settledBefore]), [
          ["usd", "conflict", 1, 1006n, 0n, 0],
          ["usd", "declined", 1, 1002n, 0n, 0],
          ["usd", "planned", 1, 1004n, 0n, 0],
          ["usd", "quarantined", 1, 1005n, 0n, 0],
          ["usd", "rejected", 1, 1003n, 0n, 0],
          ["usd", "succeeded", 2, 2001n, 2001n, 1]
        ])

        const unpaid = (states: ReadonlyArray<"declined" | "rejected">, afterLine: number, limit: number) =>
          Effect.map(book.unpaid("report", states, afterLine, limit), (rows) => rows.map(({ attempt, chargeKey, line, state }) => [line, chargeKey, state, attempt]))
        const ended = [[4, poor!.chargeKey, "declined", 1], [5, refused!.chargeKey, "rejected", 1]]
        assert.deepStrictEqual(yield* unpaid(["declined"], 0, 10), ended.slice(0, 1))
        assert.deepStrictEqual(yield* unpaid(["declined", "rejected"], 0, 10), ended)
        assert.deepStrictEqual(yield* unpaid(["declined", "rejected"], 0, 1), ended.slice(0, 1))
        assert.deepStrictEqual(yield* unpaid(["declined", "rejected"], 4, 10), ended.slice(1))
        assert.deepStrictEqual({ ...(yield* book.unpaid("report", ["declined"], 0, 10))[0]!.request }, { ...poor! })
        yield* ledger.reopen({ chargeKeys: [poor!.chargeKey], from: ["declined"], actor: "ada", reason: "new card" })
        assert.deepStrictEqual(linesOf(yield* book.pending("report", 0, 10)), [4, 6])
        yield* book.finish("report", "finished")
        assert.strictEqual((yield* book.report("report", 0, 100)).length, 7)
      }))

    it.effect("stages and plans thousands of rows", () =>
      Effect.gen(function*() {
        const book = yield* RunLedger
        const requests = Array.from({ length: 5000 }, (_, index) => chargeFor(`many-${index}`, "2012-01"))
        yield* staged("many", rowsOf(requests))
        assert.deepStrictEqual(yield* book.plan("many"), { planned: 5000, present: 0 })
        const [total] = yield* book.summary("many")
        assert.deepStrictEqual([total?.rows, total?.amountMinor], [5000, 5_000_000n])
        assert.deepStrictEqual(linesOf(yield* book.pending("many", 4990, 1000)), Array.from({ length: 11 }, (_, index) => 4991 + index))
      }))

    it.effect("pages up to a line, and tells the last one", () =>
      Effect.gen(function*() {
        const book = yield* RunLedger
        assert.strictEqual(yield* book.lastLine("nothing"), 0)
        yield* staged("through", rowsOf(Array.from({ length: 9 }, (_, index) => chargeFor(`through-${index}`, "2011-12"))))
        yield* book.plan("through")
        assert.strictEqual(yield* book.lastLine("through"), 10)
        assert.deepStrictEqual(linesOf(yield* book.pending("through", 3, 100, 6)), [4, 5, 6])
        assert.deepStrictEqual(linesOf(yield* book.pending("through", 3, 2, 6)), [4, 5])
      }))

    it.effect("takes late rows behind those that it has, each identity once, and does nothing when asked again", () =>
      Effect.gen(function*() {
        const book = yield* RunLedger
        const all = Array.from({ length: 5 }, (_, index) => chargeFor(`late-${index}`, "2012-01"))
        yield* staged("late", rowsOf(all.slice(0, 3)))
        yield* book.plan("late")
        yield* pay(all[0]!)
        yield* staged("late/2", rowsOf(all.toReversed()))
        assert.strictEqual(yield* book.absorb("late", "late/2"), 2)
        assert.strictEqual(yield* book.absorb("late", "late/2"), 0)
        assert.deepStrictEqual(yield* book.totals("late/2"), [])
        assert.strictEqual((yield* book.plan("late")).planned, 2)
        const report = yield* book.report("late", 0, 100)
        assert.deepStrictEqual(report.map(({ line, request, state }) => [line, request.customerId, state]), [
          [2, "late-0", "succeeded"], [3, "late-1", "planned"], [4, "late-2", "planned"], [5, "late-4", "planned"], [6, "late-3", "planned"]
        ])
      }))
  })
