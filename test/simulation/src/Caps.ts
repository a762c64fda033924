/** The caps of a world: of one, or of two or three namespaces, periods and currencies, whose charges are mixed within one batch. */
import { defaultNamespace } from "@purser/core"
import { type Rng, rngOf } from "./Rng.ts"
import type { PlannedCharge, Scenario } from "./Scenario.ts"

/** One cap. */
export interface PlannedCap {
  readonly namespace: string
  readonly billingPeriod: string
  readonly currency: string
  readonly capMinor: bigint
}

type Scope = Omit<PlannedCap, "capMinor">
type Priced = Pick<PlannedCharge, "amountMinor" | "cap">

const first: Scope = { namespace: defaultNamespace, billingPeriod: "2026-10", currency: "usd" }

/** Each differs from the first in one thing or in two. */
const others: ReadonlyArray<Scope> = [
  { ...first, currency: "eur" },
  { ...first, currency: "eur" },
  { ...first, billingPeriod: "2026-09" },
  { ...first, billingPeriod: "2026-09" },
  { ...first, namespace: "second" },
  { ...first, billingPeriod: "2026-09", currency: "gbp" }
]

/** What the caps of a seed count; of one period where that is compared with the account. */
export const scopesOf = (seed: string, isOnePeriod: boolean): ReadonlyArray<Scope> => {
  const rng = rngOf(seed).branch("caps")
  if (!rng.chance(0.3)) return [first]
  const scopes = new Set([first, ...Array.from({ length: rng.between(1, 2) }, () => rng.pick(others))].map((scope) => JSON.stringify(scope)))
  return [...scopes].map((scope): Scope => JSON.parse(scope)).filter(({ billingPeriod }) => !isOnePeriod || billingPeriod === first.billingPeriod)
}

/** The sum of a cap's charges. */
export const totalOf = (charges: ReadonlyArray<Priced>, cap: number): bigint =>
  charges.reduce((sum, charge) => charge.cap === cap ? sum + BigInt(charge.amountMinor) : sum, 0n)

/** Room for all charges of a cap, or for some of them. */
export const roomOf = (rng: Rng, charges: ReadonlyArray<Priced>, cap: number): bigint => {
  const amounts = charges.filter((charge) => charge.cap === cap).map(({ amountMinor }) => amountMinor)
  const total = amounts.reduce((sum, amount) => sum + amount, 0)
  // One that nothing is charged under has room that others must not take.
  if (amounts.length === 0) return 10_000n
  return BigInt(rng.chance(0.6) ? total : Math.max(...amounts, Math.floor(total * 0.6)))
}

/** Whether all charges of a cap fit under it. */
export const fits = ({ caps, charges }: Pick<Scenario, "caps" | "charges">, cap: number): boolean => totalOf(charges, cap) <= caps[cap]!.capMinor

/** Whether some cap has no room for all that is to be charged under it. */
export const isTight = (scenario: Scenario): boolean => scenario.caps.some((_, cap) => !fits(scenario, cap))

export const sameScope = (one: Scope, other: Scope): boolean =>
  one.namespace === other.namespace && one.billingPeriod === other.billingPeriod && one.currency === other.currency

/** A scope in words. */
export const scopeText = ({ billingPeriod, currency, namespace }: Scope): string => `${namespace} ${billingPeriod} ${currency}`
