import { assert, describe, it } from "@effect/vitest"
import { answeredWithin, type BillingPeriod, type CapReport, type Currency, type RunStateTotal, type StateTotal } from "@purser/core"
import { noProgress, type RunProgress } from "@purser/engine"
import { Arbitrary, Deferred, Duration, Effect, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import { stripVTControlCharacters } from "node:util"
import { countsOf, summaryText } from "../../src/handlers/runReport.ts"
import { statusJson } from "../../src/handlers/statusJson.ts"
import { capLine, capLines, legend, type ShownCounts, statesBar } from "../../src/ui/ChargeStates.ts"
import { bar, clock, line, sparkline } from "../../src/ui/Panel.ts"
import { makeRates } from "../../src/ui/Rates.ts"
import { progressLine, runLines } from "../../src/ui/RunProgressView.ts"
import { seenAfter, statusLines, type StatusSeen, statusText } from "../../src/ui/StatusView.ts"
import { workerLine, workerLines } from "../../src/ui/WorkerView.ts"

const usd = "usd" as Currency
const cap = (reservedMinor: bigint, capMinor = 4_950_000n): CapReport => ({
  namespace: "zmq-billing", billingPeriod: "2026-10" as BillingPeriod, currency: usd, expectedMinor: 4_500_000n, headroomPercent: 110, capMinor, reservedMinor, reservations: 1, closed: false
})
const progress = (paid: number, declined: number, error = 0): RunProgress => ({
  ...noProgress, submitted: paid + declined + error, outcomes: { ...noProgress.outcomes, Succeeded: paid, Declined: declined, error }, lastError: error > 0 ? "no reply\u001b[2J\nin 30000 ms" : undefined
})
/** A count that grew by these numbers, second by second. */
const grown = (...steps: ReadonlyArray<number>) => {
  const rates = makeRates()
  let count = 0
  ;[0, ...steps].forEach((step, second) => rates.note(second * 1000, count += step))
  return rates
}
const total = (state: StateTotal["state"], charges: number, quarantined = 0): StateTotal => ({
  billingPeriod: "2026-10", currency: "usd", state, charges, amountMinor: BigInt(charges) * 1300n, receivedMinor: state === "succeeded" ? BigInt(charges) * 1300n : 0n, quarantined
})
const pause = { cause: "person", actor: "ann", reason: "a look at the caps", sinceMs: 0 } as const
const atMs = Date.UTC(2026, 10, 29, 23, 4, 7)
const seen = (look: StatusSeen["look"]): StatusSeen => ({ look, atMs, awaySinceMs: undefined })
const plain = (columns: number) => ({ columns, color: false, rows: 24 })

const run = (columns: number, color = false) => runLines({ columns, color }, {
  title: "bills.csv  run 20261129T230230Z-773190f6", progress: progress(1410, 88, 3), total: 3000, elapsedMs: 12_000, rates: grown(90, 110, 130, 125, 140, 150), caps: [cap(1_903_400n)]
})
const status = (columns: number, color = false) => statusLines({ columns, color, rows: 24 }, {
  title: "purser status  ledger postgres://purser@db/purser", nowMs: atMs, rates: grown(10, 20, 40, 20),
  seen: seen({ totals: [total("succeeded", 1770), total("declined", 111), total("planned", 1117), total("attached", 2, 1)], caps: [cap(4_900_000n)], pauses: [pause] })
})
const worker = (columns: number, color = false) => workerLines({ columns, color }, {
  title: "worker on tcp://127.0.0.1:5555, ledger postgres://purser@db/purser", elapsedMs: 3_723_000,
  figures: { counts: { paid: 1904, declined: 120 }, settled: 2024, inFlight: 6, redelivered: 2, unsettled: 1, stripeCalls: 4048, rateLimited: 0 },
  charges: grown(50, 60, 70), calls: grown(100, 120, 140), caps: [cap(0n)]
})

describe("a live view", () => {
  it("of a run, at 80 columns", () => {
    assert.deepStrictEqual(run(80), [
      "bills.csv  run 20261129T230230Z-773190f6                                  00:12",
      "█████████████████████████████▒▒░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  1,498/3,000 49%",
      "█ 1,410 paid  ▒ 88 declined  ░ 1,502 open  3 retried",
      "rate                                       ▅▆▇▇██ 124/s   mean 125/s  ETA 00:13",
      "cap  2026-10 ██████████████·····················  19034.00 of 49500.00 usd, 38%",
      "last error: no reply [2J in 30000 ms"
    ])
  })

  it("of a run that is held: why, and no time left", () => {
    const lines = runLines(plain(80), {
      title: "bills.csv  run x", progress: progress(1410, 88), total: 3000, elapsedMs: 12_000, rates: grown(90, 0, 0), caps: [], held: "held: a look at the caps"
    })
    assert.deepStrictEqual(lines.slice(3), ["rate                                               █▁▁ 30/s   mean 125/s  ETA –", "held: a look at the caps"])
  })

  it("of a run, at 120 columns", () => {
    assert.deepStrictEqual(run(120), [
      "bills.csv  run 20261129T230230Z-773190f6                                                                          00:12",
      "████████████████████████████████████████████████▒▒▒░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  1,498/3,000 49%",
      "█ 1,410 paid  ▒ 88 declined  ░ 1,502 open  3 retried",
      "rate                                                       ▅▆▇▇██ 124/s                           mean 125/s  ETA 00:13",
      "cap  2026-10 █████████████████████████████··············································  19034.00 of 49500.00 usd, 38%",
      "last error: no reply [2J in 30000 ms"
    ])
  })

  it("of all charges, at 80 columns: paused, nearly at its cap, one for a person", () => {
    assert.deepStrictEqual(status(80), [
      "purser status  ledger postgres://purser@db/purser          2026-11-29T23:04:07Z",
      "settled                                                  ▂▄█▄ 23/s   1,118 open",
      "paused by ann: a look at the caps",
      "",
      "2026-10 usd  23010.00 received of 39000.00 billed",
      "███████████████████████████████████████▒▒!░░░░░░░░░░░░░░░░░░░░░░░░  1,881/3,000",
      "█ 1,770 paid  ▒ 111 declined  ! 1 for a person  ░ 1,118 open",
      "cap  2026-10 ██████████████████████████████████·  49000.00 of 49500.00 usd, 98%"
    ])
  })

  it("of a worker, at 80 columns", () => {
    assert.deepStrictEqual(worker(80), [
      "worker on tcp://127.0.0.1:5555, ledger postgres://purser@db/purser   up 1:02:03",
      "████████████████████████████████████████████████████████████▒▒▒░  2,024 settled",
      "█ 1,904 paid  ▒ 120 declined",
      "charges                                                  ▆▇█ 60/s   6 in flight",
      "Stripe                                                  ▆▇█ 120/s   4,048 calls",
      "cap  2026-10 ········································  0.00 of 49500.00 usd, 0%",
      "2 redelivered, 1 without an outcome"
    ])
  })

  const views = { run, status, worker }
  for (const [name, view] of Object.entries(views)) {
    it(`of ${name} fits every width, says the same with colours, and has none where none are wanted`, () => {
      for (let columns = 30; columns <= 200; columns++) {
        const lines = view(columns)
        for (const text of lines) {
          assert.isBelow(text.length, columns, text)
          assert.notMatch(text, /\p{Cc}/u)
        }
        assert.deepStrictEqual(view(columns, true).map((text) => stripVTControlCharacters(text).trimEnd()), lines)
      }
      assert.isTrue(view(80, true).some((text) => text.includes("\u001b[32m")))
    })
  }

  it("of very many groups fits the rows, and says that there are more", () => {
    const totals = Array.from({ length: 30 }, (_, index) => ({ ...total("succeeded", 5), billingPeriod: `2024-${String(index % 12 + 1).padStart(2, "0")}`, currency: index < 12 ? "usd" : index < 24 ? "eur" : "gbp" }))
    const lines = statusLines(plain(80), { title: "t", nowMs: atMs, rates: grown(), seen: seen({ totals, caps: [], pauses: [] }) })
    assert.isAtMost(lines.length, 24)
    assert.match(lines.at(-1) ?? "", /^… and \d+ more/)
  })
})

describe("a ledger that is away", () => {
  const fresh = seen({ totals: [total("succeeded", 5)], caps: [], pauses: [] })
  const away = seenAfter(seenAfter(fresh, undefined, atMs + 2000), undefined, atMs + 4000)
  const told = "stale since 2026-11-29T23:04:07Z, ledger away since 2026-11-29T23:04:09Z"

  it("is said to be, since the first look that found nothing", () => {
    assert.strictEqual(statusLines(plain(80), { title: "t", nowMs: atMs + 5000, rates: grown(), seen: away })[1], told)
    assert.deepStrictEqual(statusText(atMs + 5000, away, 0), [`2026-11-29T23:04:12Z 2026-10 usd: 5 charges: 5 paid, 0/s, ${told}`])
  })

  it.effect("is given up after a time, whatever the network does with the question", () =>
    Effect.gen(function*() {
      const asked = yield* Deferred.make<void>()
      // Not even being interrupted makes it answer.
      const deaf = Effect.andThen(Deferred.succeed(asked, undefined), Effect.uninterruptible(Effect.never))
      const look = yield* Effect.forkChild(answeredWithin(deaf, Duration.seconds(10)))
      yield* Deferred.await(asked)
      yield* TestClock.adjust("10 seconds")
      assert.isUndefined(yield* Fiber.join(look))
      assert.strictEqual(yield* answeredWithin(Effect.succeed(7), Duration.seconds(10)), 7)
    }))

  it("in JSON is stale, at the time of the look", () => {
    const read = (one: StatusSeen) => (({ at, stale }) => [at, stale])(JSON.parse(statusJson(one, 0)) as { readonly at: string; readonly stale: boolean })
    assert.deepStrictEqual([read(fresh), read(away), read(seenAfter(away, fresh.look, atMs + 6000))], [
      ["2026-11-29T23:04:07Z", false], ["2026-11-29T23:04:07Z", true], ["2026-11-29T23:04:13Z", false]
    ])
  })
})

describe("many caps", () => {
  const some = [10n, 90n, 50n, 70n, 30n].map((held, index) => ({ ...cap(held, 100n), billingPeriod: `2026-0${index + 1}` as BillingPeriod }))
  const periods = (lines: ReadonlyArray<string>) => lines.map((text) => /^cap {2}(\S+)/.exec(text)?.[1] ?? text)

  it("are shown by what is in use, then the fullest, and the others counted", () => {
    const shown = capLines(plain(80), some)
    assert.deepStrictEqual(periods(shown), ["2026-02", "2026-04", "2026-03", "… and 2 more caps"])
    assert.deepStrictEqual(periods(capLines(plain(80), some, ({ billingPeriod }) => billingPeriod === "2026-01")), ["2026-01", "2026-02", "2026-04", "… and 2 more caps"])
    assert.deepStrictEqual(periods(capLines(plain(80), some.map((one, index) => ({ ...one, closed: index === 1 })))), ["2026-04", "2026-03", "2026-05", "… and 2 more caps"])
    assert.deepStrictEqual(periods(capLines(plain(30), some.slice(0, 4))).at(-1), "… and 1 more cap")
  })
})

describe("without a terminal", () => {
  it("a run is one line", () => {
    assert.strictEqual(progressLine(progress(1410, 88, 3), 3000, 125), "1498/3000 49% 125/s ETA 00:13 · 1410 paid, 88 declined, 3 retried")
    assert.strictEqual(progressLine(noProgress, 0, 0), "0/0 100% 0/s ETA –")
    assert.strictEqual(progressLine(progress(1410, 88), 3000, 125, "held: a look at the caps"), "1498/3000 49% held: a look at the caps · 1410 paid, 88 declined")
  })

  it("the account of a canceled run tells what was not sent from what nobody knows of", () => {
    const summary = ([["succeeded", 2], ["planned", 5], ["attached", 1]] as const).map(([state, rows]): RunStateTotal => ({ currency: usd, state, rows, amountMinor: 0n, receivedMinor: 0n, settledBefore: 0 }))
    const told = (canceled: boolean) => summaryText(countsOf(summary, 0, 0), summary, [], canceled)
    assert.match(told(true), /not sent +5\nunresolved +1\n/)
    assert.match(told(false), /succeeded +2\nunresolved +6\n/)
  })

  it("all charges are one line a period, and a worker is one", () => {
    assert.deepStrictEqual(statusText(atMs, seen({ totals: [total("succeeded", 1770), total("claimed", 3)], caps: [cap(4_900_000n)], pauses: [pause] }), 52), [
      "2026-11-29T23:04:07Z 2026-10 usd: 1773 charges: 1770 paid, 3 open, cap 98%, 52/s, paused by person"
    ])
    assert.deepStrictEqual(statusText(atMs, seen({ totals: [], caps: [], pauses: [] }), 0), ["2026-11-29T23:04:07Z no charges"])
    assert.strictEqual(
      workerLine({ counts: { paid: 12 }, settled: 12, inFlight: 3, redelivered: 1, unsettled: 0, stripeCalls: 24, rateLimited: 0 }, 0.2),
      "12 settled, 0.2/s, 3 in flight, 1 redelivered"
    )
  })
})

describe("pieces of a view", () => {
  const states = ["paid", "declined", "rejected", "processing", "action", "attention", "open"] as const
  const counts = Arbitrary.array(Arbitrary.schema(Schema.Int.pipe(Schema.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 })))), { minLength: 7, maxLength: 7 })

  it.prop("a bar is as wide as it should be, and shows whatever is there", [counts], ([values]) => {
    const sum = values.reduce((all, value) => all + value, 0)
    const there = values.filter((value) => value > 0).length
    const cells = bar(values.map((count) => ({ count, glyph: "x" })), sum, 40)
    const width = cells.reduce((all, { text }) => all + text.length, 0)
    assert.deepStrictEqual([cells.length, width], [there, there === 0 ? 0 : 40])
    assert.isTrue(cells.every(({ text }) => text.length >= 1))
    const shown: ShownCounts = Object.fromEntries(states.map((state, index) => [state, values[index]!]))
    assert.isBelow(statesBar({ columns: 60, color: false }, shown, sum, "right").length, 60)
    assert.isBelow(legend({ columns: 60, color: false }, shown).length, 60)
  })

  it("a sparkline is high where much was done, and flat where nothing was", () => {
    assert.strictEqual(sparkline([0, 1, 2, 4, 8], 6), " ▁▁▂▄█")
    assert.strictEqual(sparkline([0, 0, 0], 3), "▁▁▁")
    assert.strictEqual(sparkline([9, 9, 1, 9], 2), "▁█")
  })

  it("a cap over its limit, an empty one and one of nothing are drawn", () => {
    for (const one of [cap(9_900_000n), cap(0n), cap(0n, 0n)]) assert.isBelow(stripVTControlCharacters(capLine({ columns: 60, color: true }, one)).length, 60)
  })

  it("times and cut lines read as they should", () => {
    assert.deepStrictEqual([clock(0), clock(59_999), clock(3_600_000), clock(-1)], ["00:00", "00:59", "1:00:00", "00:00"])
    assert.strictEqual(line({ columns: 12, color: false }, [{ text: "a long beginning" }], [{ text: "end" }]), "a long… end")
  })

  it("a rate is the growth since the look before, whatever the time between", () => {
    const rates = makeRates()
    for (const [atMs, count] of [[0, 5], [300, 50], [1000, 105], [3000, 305], [4000, 305]] as const) rates.note(atMs, count)
    assert.deepStrictEqual([rates.series(), rates.now()], [[100, 100, 0], 300 / 4])
    // Of the last minute, and of no time in which nothing could grow.
    for (const [atMs, count] of [[34_000, 305], [64_000, 605], [94_000, 905]] as const) rates.note(atMs, count)
    assert.strictEqual(rates.now(), 600 / 60)
    rates.note(194_000, 1405)
    assert.strictEqual(rates.now(), 500 / 100)
    rates.note(200_000, 905, true)
    assert.strictEqual(rates.now(), 0)
    rates.note(202_000, 1105)
    assert.strictEqual(rates.now(), 100)
  })
})
