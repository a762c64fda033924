/**
 * The currencies that Stripe charges, with the number of decimals, the step and the smallest amount that Stripe accepts.
 *
 * The exponents are Stripe's, not ISO 4217's: ISK and UGX are sent with two decimals although nobody uses them, so
 * that an ISO table would charge a hundredth. A currency that is not in the table is refused, never guessed.
 *
 * Source: https://docs.stripe.com/currencies (zero-decimal, three-decimal and special-case currencies, minimum amounts).
 */
import { Schema } from "effect"

const zeroDecimal = "bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf"
const twoDecimal = "aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bmd bnd bob brl bsd bwp byn bzd cad cdf chf "
  + "cny cop crc cve czk dkk dop dzd egp etb eur fjd fkp gbp gel gip gmd gtq gyd hkd hnl htg huf idr ils inr isk jmd "
  + "kes kgs khr kyd kzt lak lbp lkr lrd lsl mad mdl mkd mmk mnt mop mur mvr mwk mxn myr mzn nad ngn nio nok npr nzd "
  + "pab pen pgk php pkr pln qar ron rsd rub sar sbd scr sek sgd shp sle sos srd std szl thb tjs top try ttd twd tzs "
  + "uah ugx usd uyu uzs wst xcd xcg yer zar zmw"
const threeDecimal = "bhd jod kwd omr tnd"

const minimumMinor: Record<string, number> = {
  usd: 50, aed: 200, ars: 50, aud: 50, brl: 50, cad: 50, chf: 50, cop: 50, czk: 1500, dkk: 250, eur: 50, gbp: 30,
  hkd: 400, huf: 17500, idr: 50, ils: 50, inr: 50, jpy: 50, krw: 50, mxn: 1000, myr: 200, nok: 300, nzd: 50, php: 50,
  pln: 200, ron: 200, rub: 50, sek: 300, sgd: 50, thb: 1000, zar: 50
}

/** How Stripe counts one currency. */
export interface CurrencyRule {
  /** Digits after the decimal mark in Stripe's minor unit. */
  readonly exponent: 0 | 2 | 3
  /** Every amount in minor units must be a multiple of this. */
  readonly stepMinor: 1 | 10 | 100
  /** The smallest amount in minor units that Stripe accepts; 1 where Stripe names none. */
  readonly minimumMinor: number
}

const rules = new Map<string, CurrencyRule>()
for (const [codes, exponent, stepMinor] of [[zeroDecimal, 0, 1], [twoDecimal, 2, 1], [threeDecimal, 3, 10]] as const) {
  for (const code of codes.split(" ")) {
    rules.set(code, {
      exponent,
      stepMinor: code === "isk" || code === "ugx" ? 100 : stepMinor,
      minimumMinor: minimumMinor[code] ?? 1
    })
  }
}

/** A lower-case ISO 4217 code that Stripe can charge, for example `usd`. */
export const Currency = Schema.String.pipe(
  Schema.check(Schema.makeFilter((code: string) => rules.has(code) || `"${code}" is not a currency that Stripe charges`)),
  Schema.brand("@purser/core/Currency")
)
export type Currency = typeof Currency.Type

/** Upper or lower case in, the canonical lower-case code out; `undefined` when Stripe does not charge it. */
export const parseCurrency = (text: string): Currency | undefined => {
  // The Kelvin sign, too, is a "k" in lower case.
  const code = /^[A-Z]+$/i.test(text) ? text.toLowerCase() : text
  return rules.has(code) ? code as Currency : undefined
}

/** Stripe's rule for a currency. */
export const currencyRule = (currency: Currency): CurrencyRule => {
  const rule = rules.get(currency)
  if (rule === undefined) throw new Error(`Bug: ${currency} is branded as a currency but has no rule`)
  return rule
}

/** Every currency code in the table, in no particular order. */
export const currencies: ReadonlyArray<Currency> = [...rules.keys()] as Array<Currency>
