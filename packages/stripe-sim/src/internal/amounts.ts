/**
 * Stripe's rules for an amount in minor units of a currency.
 *
 * Defines which currencies exist, their minimum charge and their divisibility. Refuses to convert or format money
 * for anyone but an error message.
 */

const supported = new Set(
  ("usd aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bhd bif bmd bnd bob brl bsd bwp byn bzd cad cdf chf clp " +
    "cny cop crc cve czk djf dkk dop dzd egp etb eur fjd fkp gbp gel gip gmd gnf gtq gyd hkd hnl hrk htg huf idr ils inr " +
    "isk jmd jod jpy kes kgs khr kmf krw kwd kyd kzt lak lbp lkr lrd lsl mad mdl mga mkd mmk mnt mop mur mvr mwk mxn myr " +
    "mzn nad ngn nio nok npr nzd omr pab pen pgk php pkr pln pyg qar ron rsd rub rwf sar sbd scr sek sgd shp sle sos srd " +
    "std szl thb tjs tnd top try ttd twd tzs uah ugx uyu uzs vnd vuv wst xaf xcd xof xpf yer zar zmw").split(" ")
)

const zeroDecimal = new Set("bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf".split(" "))
const threeDecimal = new Set(["bhd", "jod", "kwd", "omr", "tnd"])
const wholeUnitsOnly = new Set(["isk", "ugx"])

// Where the currency is not listed the settlement currency decides, which a simulator does not know: no minimum.
const minimumMinor: Readonly<Record<string, number>> = {
  usd: 50, aed: 200, ars: 50, aud: 50, brl: 50, cad: 50, chf: 50, cop: 50, czk: 1500, dkk: 250, eur: 50, gbp: 30,
  hkd: 400, huf: 17500, idr: 50, ils: 50, inr: 50, jpy: 50, krw: 50, mxn: 1000, myr: 200, nok: 300, nzd: 50, php: 50,
  pln: 200, ron: 200, rub: 50, sek: 300, sgd: 50, thb: 1000, zar: 50
}

// Card limits in digits, where they differ from the account's general maximum.
const wideMaximumMinor: Readonly<Record<string, number>> = { idr: 999_999_999_999, cop: 9_999_999_999 }

/** The largest amount an account takes unless it is told otherwise: eight digits. */
export const defaultMaximumMinor = 99_999_999

/** True if Stripe charges in this (lower-case) currency. */
export const isCurrency = (currency: string): boolean => supported.has(currency)

const digitsOf = (currency: string): number => zeroDecimal.has(currency) ? 0 : threeDecimal.has(currency) ? 3 : 2

/** An amount as Stripe's messages write it. */
export const format = (amountMinor: number, currency: string): string => {
  const digits = digitsOf(currency)
  const text = (amountMinor / 10 ** digits).toFixed(digits)
  return currency === "usd" ? `$${text} usd` : `${text} ${currency}`
}

/** Why Stripe refuses this amount (an integer of at least 1), or undefined when it takes it. */
export const refusalOf = (
  amountMinor: number,
  currency: string,
  maximumMinor: number
): { readonly code: string; readonly message: string } | undefined => {
  const maximum = Math.max(maximumMinor, wideMaximumMinor[currency] ?? 0)
  if (amountMinor > maximum) {
    return { code: "amount_too_large", message: `Amount must be no more than ${format(maximum, currency)}` }
  }
  if (wholeUnitsOnly.has(currency) && amountMinor % 100 !== 0) {
    return {
      code: "parameter_invalid_integer",
      message: `Invalid amount. Currency ${currency.toUpperCase()} has become effectively zero-decimal and charged amounts must be evenly divisible by 100`
    }
  }
  if (threeDecimal.has(currency) && amountMinor % 10 !== 0) {
    return {
      code: "parameter_invalid_integer",
      message: `Invalid amount. The last digit of an amount in ${currency.toUpperCase()} must be 0`
    }
  }
  const minimum = minimumMinor[currency] ?? 1
  return amountMinor < minimum
    ? { code: "amount_too_small", message: `Amount must be at least ${format(minimum, currency)}` }
    : undefined
}
