/** An amount of a file is what its digits say; a float on the way would show here. */
import { assert, describe, it } from "@effect/vitest"
import { type Currency, currencies, currencyRule } from "@purser/core"
import { Arbitrary, Effect, Schema } from "effect"
import { header, read, readNdjson, rowsOf } from "./support.ts"

const digit = Arbitrary.schema(Schema.Literals(["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]))
const digits = (maxLength: number) => Arbitrary.map(Arbitrary.array(digit, { minLength: 1, maxLength }), (all) => all.join(""))
const options = { maximumMinor: Number.MAX_SAFE_INTEGER }

/** The amount by whole-number arithmetic, or undefined where one of Stripe's rules refuses it. */
const byArithmetic = (units: string, decimals: string, currency: Currency): bigint | undefined => {
  const { exponent, minimumMinor, stepMinor } = currencyRule(currency)
  if (decimals.length > exponent) return undefined
  const minor = BigInt(units) * 10n ** BigInt(exponent) + BigInt(decimals || "0") * 10n ** BigInt(exponent - decimals.length)
  return minor >= BigInt(minimumMinor) && minor % BigInt(stepMinor) === 0n && minor <= BigInt(options.maximumMinor) ? minor : undefined
}

describe("amounts", () => {
  it.effect.prop("equal whole-number arithmetic in both formats", [digits(13), digits(4), Schema.Boolean, Schema.Literals(currencies)], ([units, fraction, whole, currency]) =>
    Effect.gen(function*() {
      const decimals = whole ? "" : fraction
      const text = whole ? units : `${units}.${decimals}`
      const minor = byArithmetic(units, decimals, currency)
      const expected = minor === undefined ? [] : [minor]
      const csv = yield* read(`${header}\nacme,2026-07,${text},${currency},c,,`, options)
      assert.deepStrictEqual(rowsOf(csv).map(({ request }) => BigInt(request.amountMinor)), expected)
      const object = { customer_id: "acme", billing_period: "2026-07", currency, stripe_customer_id: "c" }
      const json = yield* readNdjson(JSON.stringify({ ...object, amount: text }), options)
      assert.deepStrictEqual(rowsOf(json).map(({ request }) => BigInt(request.amountMinor)), expected)
      if (minor === undefined) return
      const number = yield* readNdjson(`{"amount_minor":${minor},${JSON.stringify(object).slice(1)}`, options)
      assert.deepStrictEqual(rowsOf(number).map(({ request }) => BigInt(request.amountMinor)), expected)
    }), { arbitrary: { runs: 300 } })
})
