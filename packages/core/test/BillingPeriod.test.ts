import { assert, beforeEach, describe, it } from "@effect/vitest"
import { DateTime, Result, Schema } from "effect"
import { type BillingPeriod, parsePeriod, periodDays, periodHasBegun, periodHasEnded } from "../src/index.ts"
import { anyText, period } from "./arbitraries.ts"

const parse = (text: string, labels: "calendar" | "opaque" = "calendar") => Result.getOrUndefined(parsePeriod(text, { labels }))
const days = (text: string): ReadonlyArray<string> => {
  const found = periodDays(parse(text)!)!
  return [found.firstDayMs, found.lastDayMs].map((ms) => DateTime.formatIsoDateUtc(DateTime.makeUnsafe(ms)))
}

const accepted: ReadonlyArray<readonly [text: string, canonical: string, first: string, last: string]> = [
  ["2026-07", "2026-07", "2026-07-01", "2026-07-31"],
  ["2026-02", "2026-02", "2026-02-01", "2026-02-28"],
  ["2028-02", "2028-02", "2028-02-01", "2028-02-29"],
  ["2026-12", "2026-12", "2026-12-01", "2026-12-31"],
  ["9999-12", "9999-12", "9999-12-01", "9999-12-31"],
  ["0001-01", "0001-01", "0001-01-01", "0001-01-31"],
  ["0099-12", "0099-12", "0099-12-01", "0099-12-31"],
  ["Q3-2026", "Q3-2026", "2026-07-01", "2026-09-30"],
  ["2026-Q3", "Q3-2026", "2026-07-01", "2026-09-30"],
  ["2026Q3", "Q3-2026", "2026-07-01", "2026-09-30"],
  ["2026Q4", "Q4-2026", "2026-10-01", "2026-12-31"],
  ["2026", "2026", "2026-01-01", "2026-12-31"],
  ["2026-W01", "2026-W01", "2025-12-29", "2026-01-04"],
  ["2026-W31", "2026-W31", "2026-07-27", "2026-08-02"],
  ["2026-W53", "2026-W53", "2026-12-28", "2027-01-03"],
  ["2020-W53", "2020-W53", "2020-12-28", "2021-01-03"],
  ["2026-07-31", "2026-07-31", "2026-07-31", "2026-07-31"],
  ["2028-02-29", "2028-02-29", "2028-02-29", "2028-02-29"],
  ["2028-02-29/2028-03-28", "2028-02-29/2028-03-28", "2028-02-29", "2028-03-28"],
  ["2026-01-31/2026-02-27", "2026-01-31/2026-02-27", "2026-01-31", "2026-02-27"]
]

const refused = [
  "", " ", "2026-13", "2026-00", "2026-7", "2026-Q5", "2026-Q0", "Q5-2026", "Q0-2026", "2026-q3", "q3-2026", "Q3 2026", "Q32026", "26-07", "02026-07", "+2026", "-2026",
  "0000", "0000-01", "Q1-0000", "0000-Q1", "0000-W01", "0000-01-01", "0000-01-01/2026-01-01", "2026-W00", "2026-W54", "2025-W53", "2027-W53", "2026-W1", "2026-w31",
  "2026-02-29", "2026-02-30", "2026-04-31", "2100-02-29", "2026-07-32", "2026-07-00", "2026-02-29/2026-03-28", "2026-01-31/2026-02-29", "2026-07-31/2026-07-01", "2026-07-01/", "/2026-07-01",
  "2026-07-01/2026-07-31/2026-08-01", "2026-07-01 / 2026-07-31", "2026-07-01--2026-07-31", "2026/07", "07-2026", "July 2026", "2026-07\n", " 2026-07", "2026-07 ", "2026‐07", "２０２６", "2026-07-01T00:00:00Z"
]

// What was read before is remembered: each test begins where only other periods are, so that it asks the reader and not its memory.
let forgotten = 0
beforeEach(() => {
  for (let index = 0; index < 65; index++) {
    const year = 3000 + forgotten++ % 5000
    for (const text of [`${year}`, `${year}-11`, `${year}-11-11`]) parsePeriod(text)
  }
})

describe("BillingPeriod", () => {
  for (const [text, canonical, first, last] of accepted) {
    it(`reads ${text} as ${canonical}, ${first} to ${last}`, () => {
      assert.strictEqual(parse(text), canonical)
      assert.deepStrictEqual(days(text), [first, last])
    })
  }

  for (const text of refused) {
    it(`refuses ${JSON.stringify(text)}`, () => {
      const read = parsePeriod(text)
      assert.strictEqual(Result.isFailure(read) ? read.failure.text : undefined, text)
    })
  }

  it("says of a well-formed text that the period does not exist, and of others which forms do", () => {
    const hint = (text: string) => Result.getOrThrow(Result.flip(parsePeriod(text))).hint
    for (const text of ["2026-02-29", "2026-13", "2026-W54", "2026-W00", "2026-07-01/2026-02-30", "2026-07-01/0000-01-01", "2026-07-01/2026-06-30"]) {
      assert.strictEqual(hint(text), "this period does not exist")
    }
    assert.include(hint("July"), "expected 2026-07")
    const error = Result.getOrThrow(Result.flip(parsePeriod("2026-13")))
    assert.deepStrictEqual([error.message, error.isRetryable], ["billing period \"2026-13\": this period does not exist", false])
  })

  it.prop("keeps a canonical text, so that a key does not depend on how often it was read", [period], ([text]) => {
    assert.strictEqual(parse(text), text)
    const found = periodDays(text)!
    assert.isAtLeast(found.lastDayMs, found.firstDayMs)
    assert.strictEqual(found.firstDayMs % 86_400_000, 0)
    assert.strictEqual(found.lastDayMs % 86_400_000, 0)
  })

  it.prop("answers any text without throwing", [anyText], ([text]) => {
    const read = parse(text)
    if (read !== undefined) assert.strictEqual(parse(read), read)
  })

  it.prop("follows the months without a gap", [Schema.Int.pipe(Schema.check(Schema.isBetween({ minimum: 1, maximum: 9998 }))), Schema.Int.pipe(Schema.check(Schema.isBetween({ minimum: 1, maximum: 12 })))], ([year, month]) => {
    const name = (y: number, m: number) => parse(`${String(y).padStart(4, "0")}-${String(m).padStart(2, "0")}`)!
    const next = month === 12 ? name(year + 1, 1) : name(year, month + 1)
    assert.strictEqual(periodDays(name(year, month))!.lastDayMs + 86_400_000, periodDays(next)!.firstDayMs)
  })

  it.prop("follows the weeks without a gap, in years of 52 and of 53", [Schema.Int.pipe(Schema.check(Schema.isBetween({ minimum: 1, maximum: 9998 })))], ([year]) => {
    const name = (y: number, week: number) => parse(`${String(y).padStart(4, "0")}-W${week}`)
    const last = name(year, 53) ?? name(year, 52)!
    const first = parse(`${String(year + 1).padStart(4, "0")}-W01`)!
    assert.strictEqual(periodDays(last)!.lastDayMs + 86_400_000, periodDays(first)!.firstDayMs)
  })
})

describe("labels", () => {
  it("are taken as they stand when they are declared opaque", () => {
    assert.strictEqual(parse("summer 2026", "opaque"), "summer 2026")
    assert.strictEqual(periodDays("summer 2026" as BillingPeriod), undefined)
  })

  it("do not shadow the calendar: known spellings stay canonical", () => assert.strictEqual(parse("2026-Q3", "opaque"), "Q3-2026"))

  it("obey the rule of ids, since two that are hashed alike would be one charge", () => {
    for (const text of ["", " a", "a ", "a\nb", "\ud800", "\udc00a", "x".repeat(256)]) assert.strictEqual(parse(text, "opaque"), undefined)
    assert.strictEqual(Result.getOrThrow(Result.flip(parsePeriod("a\nb", { labels: "opaque" }))).hint, "a label must not contain control characters or line breaks")
  })
})

describe("begun and ended", () => {
  const at = (text: string) => DateTime.toEpochMillis(DateTime.makeUnsafe(text))
  const july = parse("2026-07")!

  it("begins with the first place on earth and ends with the last", () => {
    assert.isFalse(periodHasBegun(july, at("2026-06-30T09:59:59.999Z")))
    assert.isTrue(periodHasBegun(july, at("2026-06-30T10:00:00Z")))
    assert.isFalse(periodHasEnded(july, at("2026-08-01T11:59:59.999Z")))
    assert.isTrue(periodHasEnded(july, at("2026-08-01T12:00:00Z")))
  })

  it("is always true for a label", () => {
    assert.isTrue(periodHasBegun("summer" as BillingPeriod, 0))
    assert.isTrue(periodHasEnded("summer" as BillingPeriod, 0))
  })
})
