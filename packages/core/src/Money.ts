/**
 * An amount of one currency as an integer of Stripe's minor units.
 *
 * Decimals are read as text and turned into an integer digit by digit: no amount ever passes through a float. Signs,
 * symbols, grouping and spaces are refused, because a form that we misread could turn a credit into a charge.
 */
import { Result, Schema } from "effect"
import { type Currency, currencyRule, Currency as CurrencySchema, parseCurrency } from "./Currency.ts"

/** Why a text or a number is not an amount that can be charged. */
export class InvalidAmount extends Schema.TaggedError<InvalidAmount>("@purser/core/Money/InvalidAmount")("InvalidAmount", {
  reason: Schema.Literals([
    "NotANumber", "TooManyDigits", "NotPositive", "BelowMinimum", "AboveMaximum", "NotAMultiple"
  ]),
  text: Schema.String,
  currency: Schema.String,
  hint: Schema.String
}) {
  override get message() {
    return `amount "${this.text}" ${this.currency}: ${this.hint}`
  }
  get isRetryable() {
    return false
  }
}

/** Stripe's documented ceiling of eight digits; accounts with a higher one raise it with `PURSER_MAX_AMOUNT_MINOR`. */
export const defaultMaximumMinor = 99_999_999

const unitsMax = 18

/** A charge's amount in minor units: a positive safe integer. */
export const AmountMinor = Schema.Int.pipe(
  Schema.check(Schema.isGreaterThan(0)),
  Schema.brand("@purser/core/AmountMinor")
)
export type AmountMinor = typeof AmountMinor.Type

/** The ways in which an amount may be written and how large it may be. */
export interface MoneyOptions {
  /** The character between units and decimals; grouping is never accepted. */
  readonly decimalMark?: "." | ","
  /** The largest amount in minor units; never more than `Number.MAX_SAFE_INTEGER`. */
  readonly maximumMinor?: number
  /** The smallest amount in minor units instead of Stripe's for a charge; a refund has none. */
  readonly minimumMinor?: number
}

/** `{ amountMinor, currency }`: a positive integer of minor units and a lower-case currency. */
export class Money extends Schema.Class<Money>("@purser/core/Money")({
  amountMinor: AmountMinor,
  currency: CurrencySchema
}) {
  /** Reads minor units (`1999`) and checks Stripe's rules for the currency. */
  static fromMinor(amountMinor: number | bigint, currency: Currency, options?: MoneyOptions): Result.Result<Money, InvalidAmount> {
    return typeof amountMinor === "bigint" || Number.isInteger(amountMinor)
      ? check(BigInt(amountMinor), String(amountMinor), currency, options)
      : refuse("NotANumber", String(amountMinor), currency, "expected an integer of minor units")
  }

  /** Reads a decimal in major units (`19.99`) and checks Stripe's rules for the currency. */
  static fromDecimal(text: string, currency: Currency, options?: MoneyOptions): Result.Result<Money, InvalidAmount> {
    const { exponent } = currencyRule(currency)
    const mark = options?.decimalMark ?? "."
    const match = (mark === "." ? /^(\d+)(?:\.(\d+))?$/ : /^(\d+)(?:,(\d+))?$/).exec(text)
    if (match === null) {
      return refuse("NotANumber", text, currency, `expected plain digits with "${mark}" as the decimal mark, no sign, symbol, space or grouping`)
    }
    const [, units, decimals = ""] = match
    if (decimals.length > exponent) {
      return refuse("TooManyDigits", text, currency, `${currency} has ${exponent} decimals, ${decimals.length} were given`)
    }
    // No sum of money has more digits; however many there are, they are not worked with.
    if (units!.length > unitsMax) return tooMuch(text, currency, options)
    return check(BigInt(units! + decimals.padEnd(exponent, "0")), text, currency, options)
  }

  /** The amount as a decimal in major units, for people: `19.99`. */
  static formatMinor(amountMinor: number | bigint, currency: Currency): string {
    const { exponent } = currencyRule(currency)
    const negative = amountMinor < 0
    const digits = String(amountMinor).replace("-", "").padStart(exponent + 1, "0")
    const units = digits.slice(0, digits.length - exponent)
    const text = exponent === 0 ? units : `${units}.${digits.slice(digits.length - exponent)}`
    return negative ? `-${text}` : text
  }

  /** The amount with its currency, for people: `19.99 usd`; of a currency that nobody knows, its minor units. */
  static text(amountMinor: number | bigint, code: string): string {
    const currency = parseCurrency(code)
    return currency === undefined ? `${amountMinor} minor units of ${code}` : `${Money.formatMinor(amountMinor, currency)} ${currency}`
  }

  get decimal(): string {
    return Money.formatMinor(this.amountMinor, this.currency)
  }
}

const refuse = (reason: InvalidAmount["reason"], text: string, currency: Currency, hint: string) =>
  Result.fail(new InvalidAmount({ reason, text, currency, hint }))

/** A higher ceiling than the safe integers would let an amount through that a number cannot hold. */
const maximumOf = (options: MoneyOptions | undefined) => BigInt(Math.floor(Math.min(options?.maximumMinor ?? defaultMaximumMinor, Number.MAX_SAFE_INTEGER)))
const tooMuch = (text: string, currency: Currency, options: MoneyOptions | undefined) =>
  refuse("AboveMaximum", text, currency, `the largest amount is ${Money.formatMinor(maximumOf(options), currency)}`)

const check = (minor: bigint, text: string, currency: Currency, options: MoneyOptions | undefined): Result.Result<Money, InvalidAmount> => {
  const rule = currencyRule(currency)
  if (minor <= 0n) return refuse("NotPositive", text, currency, "must be more than zero")
  if (minor > maximumOf(options)) return tooMuch(text, currency, options)
  if (minor % BigInt(rule.stepMinor) !== 0n) {
    return refuse("NotAMultiple", text, currency, `must be a multiple of ${Money.formatMinor(rule.stepMinor, currency)}`)
  }
  const minimumMinor = options?.minimumMinor ?? rule.minimumMinor
  if (minor < BigInt(minimumMinor)) {
    return refuse("BelowMinimum", text, currency, `Stripe's smallest amount is ${Money.formatMinor(minimumMinor, currency)}`)
  }
  return Result.succeed(new Money({ amountMinor: Number(minor) as AmountMinor, currency }))
}
