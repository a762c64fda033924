/**
 * What a person expects the charges to add up to: `1000.00`, `usd=1000.00` or `2026-07:usd=1000.00`, and which totals
 * of the input each of them speaks of.
 */
import { type CapScope, type Currency, Money, parseCurrency, parsePeriod } from "@purser/core"
import type { CapDecision, RunCheck } from "@purser/engine"
import { Effect, Result } from "effect"
import { type CommandFailed, refused } from "../CommandFailed.ts"

/** One `--expected-total`, as given. */
export interface ExpectedTotal {
  readonly text: string
  readonly billingPeriod: string | undefined
  readonly currency: Currency | undefined
  readonly decimal: string
}

/** Reads one `--expected-total`. */
export const parseExpectedTotal = Effect.fnUntraced(function*(
  text: string,
  labels: "calendar" | "opaque"
): Effect.fn.Return<ExpectedTotal, CommandFailed> {
  const match = /^(?:(?:([^=]+):)?([A-Za-z]{3})=)?(\d+(?:\.\d+)?)$/.exec(text)
  if (match === null) {
    return yield* refused(`--expected-total ${text}: expected 1000.00, usd=1000.00 or 2026-07:usd=1000.00`)
  }
  const [, periodText, currencyText, decimal] = match
  const currency = currencyText === undefined ? undefined : parseCurrency(currencyText)
  if (currencyText !== undefined && currency === undefined) {
    return yield* refused(`--expected-total ${text}: "${currencyText}" is not a currency that Stripe charges`)
  }
  const period = periodText === undefined ? undefined : parsePeriod(periodText, { labels })
  if (period !== undefined && Result.isFailure(period)) return yield* refused(`--expected-total ${text}: ${period.failure.message}`)
  return { text, billingPeriod: period?.success, currency, decimal: decimal! }
})

/** The amount of an `--expected-total` in minor units. */
export const minorOf = (text: string, decimal: string, currency: Currency): Effect.Effect<bigint, CommandFailed> => {
  const money = Money.fromDecimal(decimal, currency, { maximumMinor: Number.MAX_SAFE_INTEGER })
  return Result.isFailure(money) ? Effect.fail(refused(`--expected-total ${text}: ${money.failure.message}`)) : Effect.succeed(BigInt(money.success.amountMinor))
}

const label = (scope: CapScope) => `${scope.billingPeriod} ${scope.currency}`

/** Reads `1.10` as 110 hundredths; between 1.00 and 2.00. */
export const parseHeadroom = (text: string): Effect.Effect<number, CommandFailed> => {
  const match = /^([12])(?:\.(\d{1,2}))?$/.exec(text)
  const percent = match === null ? 0 : Number(match[1]) * 100 + Number((match[2] ?? "").padEnd(2, "0"))
  return percent >= 100 && percent <= 200
    ? Effect.succeed(percent)
    : Effect.fail(refused(`--headroom ${text}: expected a factor from 1.00 to 2.00 with at most two decimals, for example 1.10`))
}

/**
 * Decides every cap of the input. A total that nobody named keeps the cap that is open, or is expected as it stands in
 * the file; a named total must speak of exactly one total of the file.
 */
export const decideCaps = Effect.fnUntraced(function*(
  check: RunCheck,
  expected: ReadonlyArray<ExpectedTotal>,
  headroomPercent: number
): Effect.fn.Return<ReadonlyArray<CapDecision>, CommandFailed> {
  const named = new Map<string, bigint>()
  for (const one of expected) {
    const meant = check.totals.filter(({ total }) =>
      (one.currency === undefined || one.currency === total.currency)
      && (one.billingPeriod === undefined || one.billingPeriod === total.billingPeriod)
    )
    if (meant.length === 0) {
      return yield* refused(`--expected-total ${one.text} speaks of no row: the file has ${check.totals.map(({ total }) => label(total)).join(", ")}`)
    }
    if (meant.length > 1) {
      return yield* refused(
        `--expected-total ${one.text} could mean ${meant.map(({ total }) => label(total)).join(" or ")}: say which, for example `
          + `${meant[0]!.total.billingPeriod}:${meant[0]!.total.currency}=${one.decimal}`
      )
    }
    const { total } = meant[0]!
    const expectedMinor = yield* minorOf(one.text, one.decimal, total.currency)
    const key = JSON.stringify([total.namespace, total.billingPeriod, total.currency])
    if (named.has(key)) return yield* refused(`--expected-total is given twice for ${label(total)}`)
    named.set(key, expectedMinor)
  }
  const decisions: Array<CapDecision> = []
  for (const { cap, total } of check.totals) {
    const scope: CapScope = { namespace: total.namespace, billingPeriod: total.billingPeriod, currency: total.currency }
    const expectedMinor = named.get(JSON.stringify([total.namespace, total.billingPeriod, total.currency]))
    if (expectedMinor === undefined && expected.length > 0 && cap === undefined) {
      return yield* refused(`no --expected-total is given for ${label(total)}, and no cap is open for it`)
    }
    decisions.push({
      scope,
      expected: expectedMinor === undefined
        ? cap === undefined ? { expectedMinor: total.amountMinor, headroomPercent } : undefined
        : { expectedMinor, headroomPercent }
    })
  }
  return decisions
})
