/**
 * What was billed last time, beside what a run is about to bill: the last period before it of the same length, as the
 * ledger's caps count it. A file of the wrong year or in the wrong unit shows by that before money moves.
 */
import { type BillingPeriod, type CapReport, type CapScope, Money, periodDays } from "@purser/core"

/** How many times more, or less, than last time is far off. */
export const farOffFactor = 10

const dayMs = 86_400_000

/** Months differ by three days, quarters by two, leap years by one. */
const sameLength = (one: BillingPeriod, other: BillingPeriod): boolean => {
  const [a, b] = [periodDays(one), periodDays(other)]
  if (a === undefined || b === undefined) return false
  const [long, short] = [a, b].map(({ firstDayMs, lastDayMs }) => (lastDayMs - firstDayMs) / dayMs + 1).sort((x, y) => y - x)
  return long! - short! <= Math.min(3, short! * 0.15)
}

const firstDayOf = (period: BillingPeriod) => periodDays(period)?.firstDayMs ?? 0

/** The newest billed period before this one, of the same namespace, currency and length; `undefined` when there is none. */
export const lastBilled = (scope: CapScope, caps: ReadonlyArray<CapReport>): CapReport | undefined =>
  caps.filter(({ billingPeriod, currency, namespace, reservedMinor }) =>
    namespace === scope.namespace && currency === scope.currency && reservedMinor > 0n && sameLength(billingPeriod, scope.billingPeriod)
    && firstDayOf(billingPeriod) < firstDayOf(scope.billingPeriod)
  ).sort((a, b) => firstDayOf(b.billingPeriod) - firstDayOf(a.billingPeriod))[0]

/** What a run would bill, in rows and minor units. */
export interface Billed {
  readonly rows: number
  readonly amountMinor: bigint
}

const isFarOff = (now: bigint, then: bigint): boolean => now >= then * BigInt(farOffFactor) || now * BigInt(farOffFactor) <= then

/** In words: last time's figures, and what is far off of them; `muchMore` where the sum is so, upwards. */
export const comparison = (
  billed: Billed,
  last: CapReport
): { readonly text: string; readonly farOff: string | undefined; readonly muchMore: boolean } => {
  const then = `${last.reservations} charges, ${Money.formatMinor(last.reservedMinor, last.currency)}`
  const off = [
    ...(isFarOff(BigInt(billed.rows), BigInt(last.reservations)) ? ["the number of rows"] : []),
    ...(isFarOff(billed.amountMinor, last.reservedMinor) ? ["the sum"] : [])
  ]
  return {
    text: `${last.billingPeriod} had ${then}`,
    muchMore: billed.amountMinor >= last.reservedMinor * BigInt(farOffFactor),
    farOff: off.length === 0 ? undefined : `${off.join(" and ")} ${off.length === 1 ? "is" : "are"} ${farOffFactor} times more or less than in ${last.billingPeriod} (${then})`
  }
}
