/** Files as billing people really have them, through the command: what is charged, what is refused, and with which words. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { atDesk, caseFile, csv, type Desk, inPairs } from "../src/Desk.ts"
import type { Ended } from "../src/Purser.ts"

const live = (title: string, test: Parameters<typeof atDesk>[0]) => it.live(title, () => atDesk(test), 120_000)

/** Refused as a whole, with these words, and nothing reached Stripe. */
const refuses = Effect.fnUntraced(function*({ calls }: Desk, ended: Ended, ...words: ReadonlyArray<string>) {
  assert.deepStrictEqual([ended.code, ended.stdout], [1, ""], ended.stderr)
  for (const word of words) assert.include(ended.stderr, word)
  assert.strictEqual(yield* calls, 0)
})

/** Customer, item, amount and currency of everything that was paid; each once. */
const charged = ({ paid }: Desk) =>
  Effect.map(paid, (books) => {
    assert.isTrue(books.every(({ payments }) => payments === 1))
    return books.map((entry) => `${entry.customer} ${entry.amountMinor} ${entry.currency} ${entry.item}`).toSorted()
  })

const row = (customer: string, amount: string, period: string) => `${customer},${period},${amount},USD,cus_T001,pm_T001,base`

describe("cases: files", () => {
  live("A1: a byte-order mark changes nothing, neither the row nor its key", (at) =>
    Effect.gen(function*() {
      at.write("bom.csv", caseFile("A1-bom.csv"))
      at.write("nobom.csv", caseFile("A1-nobom.csv"))
      assert.strictEqual((yield* at.purser(["run", "bom.csv", "--json"])).code, 0)
      const calls = yield* at.calls
      const again = yield* at.purser(["run", "nobom.csv", "--json"])
      assert.deepStrictEqual([again.code, again.json?.["alreadySettled"]], [0, 1], again.stderr)
      assert.strictEqual(yield* at.calls, calls)
      assert.deepStrictEqual(yield* charged(at), ["acme 1250 usd base"])
    }))

  live("A3: semicolons and decimal commas are read as declared, and refused undeclared", (at) =>
    Effect.gen(function*() {
      at.write("a3.csv", caseFile("A3-semicolon.csv"))
      yield* refuses(at, yield* at.purser(["run", "a3.csv", "--json"]), "--delimiter")
      const declared = yield* at.purser(["run", "a3.csv", "--json", "--delimiter", ";", "--decimal", ","])
      assert.strictEqual(declared.code, 0, declared.stderr)
      assert.deepStrictEqual(yield* charged(at), ["acme 1000 eur base"])
    }))

  live("A5: a quoted line break is data in a note, and refused in an id with both lines", (at) =>
    Effect.gen(function*() {
      at.write("badid.csv", caseFile("A5-badid.csv"))
      yield* refuses(at, yield* at.purser(["run", "badid.csv", "--json"]), "badid.csv: lines 2-3, column customer_id")
      at.write("quoted.csv", caseFile("A5-quoted.csv"))
      assert.strictEqual((yield* at.purser(["run", "quoted.csv", "--json"])).json?.["succeeded"], 2)
      assert.deepStrictEqual(yield* charged(at), ["acme 1250 usd base", "beta 1000 usd base"])
    }))

  live("A7: blank rows are counted, the last row needs no newline, and nothing to charge is no success", (at) =>
    Effect.gen(function*() {
      at.write("empty.csv", caseFile("A7-empty.csv"))
      at.write("headeronly.csv", caseFile("A7-headeronly.csv"))
      for (const none of yield* inPairs(["empty.csv", "headeronly.csv"].map((file) => at.purser(["run", file, "--json"])))) {
        yield* refuses(at, none, "nothing to charge")
      }
      at.write("tail.csv", caseFile("A7-tail.csv"))
      const tail = yield* at.purser(["run", "tail.csv", "--json"])
      assert.deepStrictEqual([tail.code, tail.json?.["rows"]], [0, 3], tail.stderr)
      assert.include(tail.stderr, "3 blank rows ignored")
      assert.strictEqual((yield* charged(at)).length, 3)
    }))

  live("B1: yen are yen, in the charge and in the cap; their decimals are refused", (at) =>
    Effect.gen(function*() {
      at.write("b1.csv", caseFile("B1-jpy.csv"))
      const ended = yield* at.purser(["run", "b1.csv", "--json", "--skip-invalid"])
      assert.deepStrictEqual([ended.code, ended.json?.["paidMinor"], ended.json?.["capMinor"]], [2, { jpy: 5000 }, { jpy: 5500 }], ended.stderr)
      assert.include(ended.stderr, "line 3, column amount (3): \"5000.50\"")
      assert.deepStrictEqual(yield* charged(at), ["acme 5000 jpy base"])
    }))

  live("B3: decimals never pass through a float", (at) =>
    Effect.gen(function*() {
      at.write("b3.csv", caseFile("B3-float.csv"))
      const ended = yield* at.purser(["run", "b3.csv", "--json", "--skip-invalid"])
      assert.deepStrictEqual([ended.code, ended.json?.["succeeded"], ended.json?.["rejected"]], [2, 4, 1], ended.stderr)
      assert.include(ended.stderr, "line 6, column amount (3): \"1.005\"")
      assert.deepStrictEqual(yield* charged(at), ["c1 1999 usd base", "c2 820 usd base", "c3 6796 usd base", "c4 52256 usd base"])
    }))

  live("B5: credits, symbols and groupings are refused, each with its line and cell", (at) =>
    Effect.gen(function*() {
      at.write("b5.csv", caseFile("B5-forms.csv"))
      const ended = yield* at.purser(["run", "b5.csv", "--json"])
      yield* refuses(at, ended, "6 rows are refused", ...[2, 3, 4, 5, 6, 7].map((line) => `b5.csv: line ${line}, column amount (3): `))
      for (const cell of ["($30.00)", "30.00-", "$30.00", "1'234.50"]) assert.include(ended.stderr, `"${cell}"`)
    }))

  live("B7: huge amounts are refused or exact, and a file in cents stops at the cap", (at) =>
    Effect.gen(function*() {
      at.write("huge.csv", caseFile("B7-huge.csv"))
      at.write("cents.csv", caseFile("B7-cents.csv"))
      const [refused, exact, cents] = yield* inPairs([
        at.purser(["run", "huge.csv", "--json"]),
        at.purser(["run", "huge.csv", "--dry-run"], { PURSER_MAX_AMOUNT_MINOR: "999999999999" }),
        at.purser(["run", "cents.csv", "--json", "--expected-total", "19.99"])
      ])
      yield* refuses(at, refused!, "line 2, column amount (3): \"1000000.00\"", "line 3, column amount (3): \"21474836.48\"")
      assert.strictEqual(exact!.code, 0, exact!.stderr)
      assert.include(exact!.stderr, "2026-07 idr: 1 rows, 21474836.48")
      yield* refuses(at, cents!, "need 1999.00 usd, the cap is 21.98")
    }))

  live("C1: ids are opaque; six that look alike are six charges, and outer blanks are refused", (at) =>
    Effect.gen(function*() {
      at.write("c1.csv", caseFile("C1-ids.csv"))
      const ended = yield* at.purser(["run", "c1.csv", "--json", "--skip-invalid"])
      assert.deepStrictEqual([ended.code, ended.json?.["succeeded"], ended.json?.["rejected"]], [2, 7, 1], ended.stderr)
      assert.include(ended.stderr, "line 8, column customer_id (1): \" acme \"")
      assert.deepStrictEqual(yield* charged(at), [
        "00042 1000 usd base", "42 1000 usd base", "acme 1000 usd base", "auth0u1 1000 usd base", "auth0|u1 1000 usd base", "x 1000 usd 1:2", "x:1 1000 usd 2"
      ])
    }))

  live("C3: two equal rows stop the run with both lines; with items they are two charges", (at) =>
    Effect.gen(function*() {
      at.write("same.csv", caseFile("C3-same.csv"))
      yield* refuses(at, yield* at.purser(["run", "same.csv", "--json"]), "lines 2 and 3", "customer \"acme\"")
      at.write("addon.csv", caseFile("C3-addon.csv"))
      assert.strictEqual((yield* at.purser(["run", "addon.csv", "--json"])).code, 0)
      assert.deepStrictEqual(yield* charged(at), ["acme 1000 usd seat-1", "acme 1000 usd seat-2"])
    }))

  live("D1: three spellings are one quarter; what does not exist is refused", (at) =>
    Effect.gen(function*() {
      // The quarter may be open, or long past, when this is run.
      const quarter = ["--allow-period", "Q3-2026"]
      at.write("d1.csv", caseFile("D1-quarter.csv"))
      at.write("one.csv", csv(row("acme", "10.00", "2026-Q3")))
      at.write("other.csv", csv(row("acme", "10.00", "2026Q3")))
      const [whole, valid] = yield* inPairs([at.purser(["run", "d1.csv", "--json"]), at.purser(["run", "d1.csv", "--json", "--skip-invalid"])])
      yield* refuses(at, whole!, "line 5, column billing_period", "line 6, column billing_period", "line 7, column billing_period", "3 rows are refused")
      yield* refuses(at, valid!, "lines 2 and 3 and 4", "period Q3-2026")
      assert.strictEqual((yield* at.purser(["run", "one.csv", "--json", ...quarter])).code, 0)
      assert.strictEqual((yield* at.purser(["run", "other.csv", "--json", ...quarter])).json?.["alreadySettled"], 1)
      assert.deepStrictEqual((yield* at.paid).map(({ billingPeriod, payments }) => [billingPeriod, payments]), [["Q3-2026", 1]])
    }))

  live("D3: a leap day that exists is billed, one that does not is refused and not shifted", (at) =>
    Effect.gen(function*() {
      at.write("d3.csv", caseFile("D3-leap.csv"))
      const ended = yield* at.purser(["run", "d3.csv", "--json", "--skip-invalid", "--allow-period", "2028-02-29/2028-03-28"])
      assert.deepStrictEqual([ended.code, ended.json?.["succeeded"], ended.json?.["rejected"]], [2, 2, 1], ended.stderr)
      assert.include(ended.stderr, "line 3, column billing_period (2): \"2026-02-29/2026-03-28\"")
      assert.deepStrictEqual((yield* at.paid).map(({ billingPeriod }) => billingPeriod).toSorted(), ["2026-01-31/2026-02-27", "2028-02-29/2028-03-28"])
    }))

  live("bad rows and rows that are one charge are told together, each by its file and line", (at) =>
    Effect.gen(function*() {
      at.write("both.csv", csv(row("acme", "12.50", "2026-07"), row("beta", "ten", "2026-07"), row("acme", "13.00", "2026-07"), row("beta", "9.00", "2026-07")))
      const bad = "both.csv: line 3, column amount"
      const doubled = "both.csv: lines 2 and 4 are one charge: customer \"acme\", period 2026-07, item \"base\""
      const refused = yield* at.purser(["run", "both.csv", "--json"])
      yield* refuses(at, refused, bad, "1 row is refused", `\n${doubled}\n`, "1 charge stands in more than one row")
      // Those are not bad rows that can be left out.
      const left = yield* at.purser(["run", "both.csv", "--json", "--skip-invalid"])
      yield* refuses(at, left, doubled)
      assert.notInclude(left.stderr, "1 row is refused")
      at.write("bad.csv", csv(row("beta", "ten", "2026-07")))
      yield* refuses(at, yield* at.purser(["run", "bad.csv", "--json"]), "bad.csv: line 2, column amount", "1 row is refused; nothing was charged")
      assert.deepStrictEqual(yield* charged(at), [])
    }))
})
