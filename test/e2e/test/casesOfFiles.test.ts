/** Files as billing people really have them, through the command: what is charged, what is refused, and with which words. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { atDesk, csv, type Desk, header, inPairs } from "../src/Desk.ts"
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

const row = (customer: string, amount: string, currency = "USD", period = "2026-07", item = "base", number = "1") =>
  `${customer},${period},${amount},${currency},cus_T00${number},pm_T00${number},${item}`

describe("cases: files", () => {
  live("A1: a byte-order mark changes nothing, neither the row nor its key", (at) =>
    Effect.gen(function*() {
      at.write("bom.csv", `\uFEFF${csv(row("acme", "12.50")).replaceAll("\n", "\r\n")}\r\n`)
      at.write("nobom.csv", `${csv(row("acme", "12.50"))}\n`)
      assert.strictEqual((yield* at.purser(["run", "bom.csv", "--json"])).code, 0)
      const calls = yield* at.calls
      const again = yield* at.purser(["run", "nobom.csv", "--json"])
      assert.deepStrictEqual([again.code, again.json?.["alreadySettled"]], [0, 1], again.stderr)
      assert.strictEqual(yield* at.calls, calls)
      assert.deepStrictEqual(yield* charged(at), ["acme 1250 usd base"])
    }))

  live("A3: semicolons and decimal commas are read as declared, and refused undeclared", (at) =>
    Effect.gen(function*() {
      at.write("a3.csv", `${header.replaceAll(",", ";")}\nacme;2026-07;10,00;EUR;cus_T001;pm_T001;base`)
      yield* refuses(at, yield* at.purser(["run", "a3.csv", "--json"]), "--delimiter")
      const declared = yield* at.purser(["run", "a3.csv", "--json", "--delimiter", ";", "--decimal", ","])
      assert.strictEqual(declared.code, 0, declared.stderr)
      assert.deepStrictEqual(yield* charged(at), ["acme 1000 eur base"])
    }))

  live("A5: a quoted line break is data in a note, and refused in an id with both lines", (at) =>
    Effect.gen(function*() {
      at.write("badid.csv", csv(row("\"ac\nme\"", "10.00")))
      yield* refuses(at, yield* at.purser(["run", "badid.csv", "--json"]), "badid.csv: lines 2-3, column customer_id")
      at.write("quoted.csv", `${header},note\r\n${row("acme", "12.50")},"first\r\nsecond ""x"""\r\n${row("beta", "10.00", "USD", "2026-07", "base", "2")},plain\r\n`)
      assert.strictEqual((yield* at.purser(["run", "quoted.csv", "--json"])).json?.["succeeded"], 2)
      assert.deepStrictEqual(yield* charged(at), ["acme 1250 usd base", "beta 1000 usd base"])
    }))

  live("A7: blank rows are counted, the last row needs no newline, and nothing to charge is no success", (at) =>
    Effect.gen(function*() {
      at.write("empty.csv", "")
      at.write("headeronly.csv", `${header}\n`)
      for (const none of yield* inPairs(["empty.csv", "headeronly.csv"].map((file) => at.purser(["run", file, "--json"])))) {
        yield* refuses(at, none, "nothing to charge")
      }
      at.write("tail.csv", csv(row("acme", "10.00"), row("beta", "10.00"), "", ",,,,,,", "   ", row("gamma", "10.00")))
      const tail = yield* at.purser(["run", "tail.csv", "--json"])
      assert.deepStrictEqual([tail.code, tail.json?.["rows"]], [0, 3], tail.stderr)
      assert.include(tail.stderr, "3 blank rows ignored")
      assert.strictEqual((yield* charged(at)).length, 3)
    }))

  live("B1: yen are yen, in the charge and in the cap; their decimals are refused", (at) =>
    Effect.gen(function*() {
      at.write("b1.csv", csv(row("acme", "5000", "JPY"), row("beta", "5000.50", "JPY")))
      const ended = yield* at.purser(["run", "b1.csv", "--json", "--skip-invalid"])
      assert.deepStrictEqual([ended.code, ended.json?.["paidMinor"], ended.json?.["capMinor"]], [2, { jpy: 5000 }, { jpy: 5500 }], ended.stderr)
      assert.include(ended.stderr, "line 3, column amount (3): \"5000.50\"")
      assert.deepStrictEqual(yield* charged(at), ["acme 5000 jpy base"])
    }))

  live("B3: decimals never pass through a float", (at) =>
    Effect.gen(function*() {
      at.write("b3.csv", csv(...["19.99", "8.20", "67.96", "522.56", "1.005"].map((amount, i) => row(`c${i}`, amount))))
      const ended = yield* at.purser(["run", "b3.csv", "--json", "--skip-invalid"])
      assert.deepStrictEqual([ended.code, ended.json?.["succeeded"], ended.json?.["rejected"]], [2, 4, 1], ended.stderr)
      assert.include(ended.stderr, "line 6, column amount (3): \"1.005\"")
      assert.deepStrictEqual(yield* charged(at), ["c0 1999 usd base", "c1 820 usd base", "c2 6796 usd base", "c3 52256 usd base"])
    }))

  live("B5: credits, symbols and groupings are refused, each with its line and cell", (at) =>
    Effect.gen(function*() {
      const forms = ["($30.00)", "30.00-", "$30.00", "\"12,50\u00A0€\"", "1\u202F234.50", "1'234.50"]
      at.write("b5.csv", csv(...forms.map((form, i) => row(`c${i}`, form))))
      const ended = yield* at.purser(["run", "b5.csv", "--json"])
      yield* refuses(at, ended, "6 rows are refused", ...forms.map((_, i) => `b5.csv: line ${i + 2}, column amount (3): `))
      for (const cell of ["($30.00)", "30.00-", "$30.00", "1'234.50"]) assert.include(ended.stderr, `"${cell}"`)
    }))

  live("B7: huge amounts are refused or exact, and a file in cents stops at the cap", (at) =>
    Effect.gen(function*() {
      at.write("huge.csv", csv(row("acme", "1000000.00"), row("beta", "21474836.48", "IDR")))
      at.write("cents.csv", csv(row("acme", "1999")))
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
      at.write("c1.csv", csv(
        row("x:1", "10.00", "USD", "2026-07", "2"), row("x", "10.00", "USD", "2026-07", "1:2"), row("auth0|u1", "10.00"), row("auth0u1", "10.00"),
        row("00042", "10.00"), row("42", "10.00"), row(" acme ", "10.00"), row("acme", "10.00")
      ))
      const ended = yield* at.purser(["run", "c1.csv", "--json", "--skip-invalid"])
      assert.deepStrictEqual([ended.code, ended.json?.["succeeded"], ended.json?.["rejected"]], [2, 7, 1], ended.stderr)
      assert.include(ended.stderr, "line 8, column customer_id (1): \" acme \"")
      assert.deepStrictEqual(yield* charged(at), [
        "00042 1000 usd base", "42 1000 usd base", "acme 1000 usd base", "auth0u1 1000 usd base", "auth0|u1 1000 usd base", "x 1000 usd 1:2", "x:1 1000 usd 2"
      ])
    }))

  live("C3: two equal rows stop the run with both lines; with items they are two charges", (at) =>
    Effect.gen(function*() {
      at.write("same.csv", csv(row("acme", "5.00", "USD", "2026-07", ""), row("acme", "5.00", "USD", "2026-07", "")))
      yield* refuses(at, yield* at.purser(["run", "same.csv", "--json"]), "lines 2 and 3", "customer \"acme\"")
      at.write("addon.csv", csv(row("acme", "5.00", "USD", "2026-07", "seat-1"), row("acme", "5.00", "USD", "2026-07", "seat-2")))
      assert.strictEqual((yield* at.purser(["run", "addon.csv", "--json"])).code, 0)
      assert.deepStrictEqual(yield* charged(at), ["acme 500 usd seat-1", "acme 500 usd seat-2"])
    }))

  live("D1: three spellings are one quarter; what does not exist is refused", (at) =>
    Effect.gen(function*() {
      const periods = ["2026-Q2", "Q2-2026", "2026Q2", "2026-Q5", "2026-13", "2026-7"]
      at.write("d1.csv", csv(...periods.map((period) => row("acme", "10.00", "USD", period))))
      at.write("one.csv", csv(row("acme", "10.00", "USD", periods[0])))
      at.write("other.csv", csv(row("acme", "10.00", "USD", periods[2])))
      const [whole, valid] = yield* inPairs([at.purser(["run", "d1.csv", "--json"]), at.purser(["run", "d1.csv", "--json", "--skip-invalid"])])
      yield* refuses(at, whole!, "line 5, column billing_period", "line 6, column billing_period", "line 7, column billing_period", "3 rows are refused")
      yield* refuses(at, valid!, "lines 2 and 3 and 4", "period Q2-2026")
      assert.strictEqual((yield* at.purser(["run", "one.csv", "--json"])).code, 0)
      assert.strictEqual((yield* at.purser(["run", "other.csv", "--json"])).json?.["alreadySettled"], 1)
      assert.deepStrictEqual((yield* at.paid).map(({ billingPeriod, payments }) => [billingPeriod, payments]), [["Q2-2026", 1]])
    }))

  live("D3: a leap day that exists is billed, one that does not is refused and not shifted", (at) =>
    Effect.gen(function*() {
      at.write("d3.csv", csv(
        row("acme", "10.00", "USD", "2028-02-29/2028-03-28"), row("beta", "10.00", "USD", "2026-02-29/2026-03-28"), row("gamma", "10.00", "USD", "2026-01-31/2026-02-27")
      ))
      const ended = yield* at.purser(["run", "d3.csv", "--json", "--skip-invalid", "--allow-period", "2028-02-29/2028-03-28"])
      assert.deepStrictEqual([ended.code, ended.json?.["succeeded"], ended.json?.["rejected"]], [2, 2, 1], ended.stderr)
      assert.include(ended.stderr, "line 3, column billing_period (2): \"2026-02-29/2026-03-28\"")
      assert.deepStrictEqual((yield* at.paid).map(({ billingPeriod }) => billingPeriod).toSorted(), ["2026-01-31/2026-02-27", "2028-02-29/2028-03-28"])
    }))
})
