import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Result, Schema } from "effect"
import { AmountMinor, type Currency, currencies, currencyRule, Currency as CurrencySchema, defaultMaximumMinor, Money, parseCurrency } from "../src/index.ts"

const currency = (code: string): Currency => parseCurrency(code)!
const anyCurrency = Schema.Literals(currencies)
const seen = (read: Result.Result<Money, { readonly reason: string }>): number | string => Result.isSuccess(read) ? read.success.amountMinor : read.failure.reason

const decimals: ReadonlyArray<readonly [text: string, code: string, expected: number | string]> = [
  ["19.99", "usd", 1999], ["8.20", "usd", 820], ["67.96", "usd", 6796], ["522.56", "usd", 52256], ["1.005", "usd", "TooManyDigits"],
  ["19.9", "usd", 1990], ["19", "usd", 1900], ["0.50", "usd", 50], ["0.49", "usd", "BelowMinimum"], ["0.00", "usd", "NotPositive"], ["0", "usd", "NotPositive"],
  ["00019.99", "usd", 1999], ["999999.99", "usd", 99_999_999], ["1000000.00", "usd", "AboveMaximum"], ["999999999999999999", "usd", "AboveMaximum"],
  ["9999999999999999999", "usd", "AboveMaximum"], [`${"9".repeat(10_000)}.99`, "usd", "AboveMaximum"], ["9999999999999999999.999", "usd", "TooManyDigits"], ["5000", "jpy", 5000], ["5000.50", "jpy", "TooManyDigits"], ["5000.0", "jpy", "TooManyDigits"],
  ["1.000", "kwd", 1000], ["1.230", "kwd", 1230], ["1.23", "kwd", 1230], ["1.234", "kwd", "NotAMultiple"], ["5", "isk", 500], ["5.00", "ugx", 500], ["5.50", "isk", "NotAMultiple"],
  ...["", " ", ".", "1.", ".5", "-1", "+1", "1e3", "1E3", "0x10", "1,000", "1,000.00", "1 000", "1_000", "1'000", "($30.00)", "30.00-", "$30.00", "12,50", "NaN", "Infinity",
    "1\u00a0000", "1\u202f234.50", "١٢", "１２", "12\n", "\ufeff12", "12.50 ", "1.2.3"].map((text) => [text, "usd", "NotANumber"] as const)
]

describe("Money.fromDecimal", () => {
  for (const [text, code, expected] of decimals) {
    it(`reads ${JSON.stringify(text)} ${code} as ${expected}`, () => assert.strictEqual(seen(Money.fromDecimal(text, currency(code))), expected))
  }

  it("reads a decimal comma only when it is declared, and then no point", () => {
    assert.strictEqual(seen(Money.fromDecimal("10,00", currency("eur"), { decimalMark: "," })), 1000)
    assert.strictEqual(seen(Money.fromDecimal("10", currency("eur"), { decimalMark: "," })), 1000)
    assert.strictEqual(seen(Money.fromDecimal("10.00", currency("eur"), { decimalMark: "," })), "NotANumber")
    assert.strictEqual(seen(Money.fromDecimal("1.000,00", currency("eur"), { decimalMark: "," })), "NotANumber")
  })

  it.prop("agrees with whole-number arithmetic, which a float does not", [Schema.Int.pipe(Schema.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))), anyCurrency], ([amountMinor, code]) => {
    const text = Money.formatMinor(amountMinor, code)
    const { minimumMinor, stepMinor } = currencyRule(code)
    const read = Money.fromDecimal(text, code, { maximumMinor: Number.MAX_SAFE_INTEGER })
    const allowed = amountMinor >= minimumMinor && amountMinor % stepMinor === 0
    assert.strictEqual(Result.isSuccess(read) ? read.success.amountMinor : undefined, allowed ? amountMinor : undefined)
    if (Result.isSuccess(read)) assert.strictEqual(read.success.decimal, text)
  }, { arbitrary: { runs: 500 } })

  it.prop("answers any text without throwing, and an accepted one means what it says", [Arbitrary.map(Arbitrary.array(Arbitrary.schema(Schema.Literals(["0", "1", "9", ".", ",", "-", " ", "e", "\u00a0"])), { maxLength: 8 }), (all) => all.join("")), Schema.String, anyCurrency], ([likely, any, code]) => {
    for (const text of [likely, any]) {
      const read = Money.fromDecimal(text, code)
      if (Result.isFailure(read)) continue
      const [units, fraction = ""] = text.split(".")
      const { exponent } = currencyRule(code)
      assert.strictEqual(BigInt(read.success.amountMinor), BigInt(units! + fraction.padEnd(exponent, "0")))
    }
  }, { arbitrary: { runs: 500 } })
})

describe("a refusal of an amount", () => {
  it("says what is wrong with which amount, and that asking again is of no use", () => {
    const said = (read: Result.Result<Money, { readonly message: string; readonly isRetryable: boolean }>) => Result.isFailure(read) ? [read.failure.message, read.failure.isRetryable] : []
    const usd = currency("usd")
    assert.deepStrictEqual(said(Money.fromMinor(1.5, usd)), ["amount \"1.5\" usd: expected an integer of minor units", false])
    assert.deepStrictEqual(said(Money.fromDecimal("1,5", usd)), ["amount \"1,5\" usd: expected plain digits with \".\" as the decimal mark, no sign, symbol, space or grouping", false])
    assert.deepStrictEqual(said(Money.fromDecimal("1.555", usd)), ["amount \"1.555\" usd: usd has 2 decimals, 3 were given", false])
    assert.deepStrictEqual(said(Money.fromDecimal("0", usd)), ["amount \"0\" usd: must be more than zero", false])
    assert.deepStrictEqual(said(Money.fromDecimal("1000000", usd)), ["amount \"1000000\" usd: the largest amount is 999999.99", false])
    assert.deepStrictEqual(said(Money.fromMinor(150, currency("isk"))), ["amount \"150\" isk: must be a multiple of 1.00", false])
    assert.deepStrictEqual(said(Money.fromMinor(1, usd)), ["amount \"1\" usd: Stripe's smallest amount is 0.50", false])
  })
})

describe("Money.fromMinor", () => {
  const minors: ReadonlyArray<readonly [number | bigint, string, number | string]> = [
    [1999, "usd", 1999], [1999n, "usd", 1999], [0, "usd", "NotPositive"], [-1999, "usd", "NotPositive"], [-1n, "usd", "NotPositive"], [49, "usd", "BelowMinimum"],
    [defaultMaximumMinor, "usd", defaultMaximumMinor], [defaultMaximumMinor + 1, "usd", "AboveMaximum"], [2n ** 70n, "usd", "AboveMaximum"], [1e300, "usd", "AboveMaximum"],
    [1.5, "usd", "NotANumber"], [Number.NaN, "usd", "NotANumber"], [Number.POSITIVE_INFINITY, "usd", "NotANumber"], [1234, "kwd", "NotAMultiple"], [150, "isk", "NotAMultiple"]
  ]
  for (const [amountMinor, code, expected] of minors) {
    it(`reads ${amountMinor} ${code} as ${expected}`, () => assert.strictEqual(seen(Money.fromMinor(amountMinor, currency(code))), expected))
  }

  it("never lets an amount through that a number cannot hold, whatever the ceiling", () => {
    for (const maximumMinor of [Number.POSITIVE_INFINITY, 1e17, 2 ** 53]) {
      assert.strictEqual(seen(Money.fromMinor(2n ** 53n, currency("usd"), { maximumMinor })), "AboveMaximum")
      assert.strictEqual(seen(Money.fromMinor(Number.MAX_SAFE_INTEGER, currency("usd"), { maximumMinor })), Number.MAX_SAFE_INTEGER)
    }
  })

  it.prop("agrees with fromDecimal", [Schema.Int, anyCurrency], ([amountMinor, code]) => {
    const minor = seen(Money.fromMinor(amountMinor, code))
    assert.strictEqual(amountMinor < 0 ? "NotPositive" : seen(Money.fromDecimal(Money.formatMinor(amountMinor, code), code)), minor)
    assert.strictEqual(Schema.is(AmountMinor)(minor), typeof minor === "number")
  })

  it("formats negative sums for people", () => {
    assert.strictEqual(Money.formatMinor(-5n, currency("usd")), "-0.05")
    assert.strictEqual(Money.formatMinor(-5, currency("jpy")), "-5")
    assert.strictEqual(Money.formatMinor(10n ** 20n, currency("usd")), "1000000000000000000.00")
  })
})

describe("Currency", () => {
  it("follows Stripe's exponents where ISO 4217 differs", () => {
    const exponents = ["jpy", "krw", "isk", "ugx", "huf", "twd", "bhd", "kwd", "usd"].map((code) => currencyRule(currency(code)).exponent)
    assert.deepStrictEqual(exponents, [0, 0, 2, 2, 2, 2, 3, 3, 2])
  })

  it("takes upper and lower case and nothing else", () => {
    assert.strictEqual(parseCurrency("USD"), "usd")
    for (const text of ["", "us", "usdt", " usd", "usd ", "xxx", "constructor", "__proto__", "$", "\u212aes", "cz\u212a"]) assert.strictEqual(parseCurrency(text), undefined)
    assert.isFalse(Schema.is(CurrencySchema)("USD"))
  })

  it("names each currency once, with a minimum that its own step allows to reach", () => {
    assert.strictEqual(new Set(currencies).size, currencies.length)
    assert.isAbove(currencies.length, 130)
    for (const code of currencies) assert.strictEqual(parseCurrency(code.toUpperCase()), code)
  })
})
