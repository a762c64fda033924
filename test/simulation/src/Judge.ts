/**
 * The verdict on a world that has come to rest. What was paid is read from the simulated Stripe's own books and lists, never
 * from the engine's word; the ledger's rows, its trail, the cap and the answers that clients were given are held against them.
 */
import { type ChargeOutcome, type ChargeRequest, defaultNamespace, movedNothing, type Ledger, type SpendCap } from "@purser/core"
import type { BookEntry, StripeSimShape } from "@purser/stripe-sim"
import { Effect } from "effect"
import { fits, sameScope, scopeText } from "./Caps.ts"
import { chargeProblems, heldMinor } from "./History.ts"
import { isRetried, type PlannedCharge, type Scenario } from "./Scenario.ts"
import { listAt } from "./StripeDesk.ts"

/** An answer that a client took for its own. */
export interface Told {
  readonly request: ChargeRequest
  readonly outcome: ChargeOutcome
}

/** What the judge looks at. */
export interface Evidence {
  readonly scenario: Scenario
  readonly requests: ReadonlyArray<ChargeRequest>
  readonly ledger: Ledger["Service"]
  readonly cap: SpendCap["Service"]
  readonly sim: StripeSimShape
  readonly told: ReadonlyArray<Told>
  /** A run was canceled for good: rows that it had not sent stay planned, or were never made. */
  readonly leavesRows: boolean
}

const isGood = ({ paymentMethod }: PlannedCharge) => paymentMethod === "pm_card_visa" || paymentMethod === null || paymentMethod === "pm_usBankAccount_success"

/** What a payment counts under; the books leave the default namespace out. */
const scopeOf = ({ billingPeriod, currency, namespace }: BookEntry) => ({ billingPeriod, currency, namespace: namespace ?? defaultNamespace })

/** Nobody planned it, and who asked for it asked once. */
export const mayBeAbsent = ({ charges, run }: Scenario, index: number): boolean => run === undefined && charges[index]!.once

interface FailedCharge {
  readonly id: string
  readonly status: string
  readonly metadata: Readonly<Record<string, string>>
  readonly payment_intent: string | null
}

/** Everything that is wrong; nothing when the promise was kept. */
export const judge = Effect.fnUntraced(function*({ cap, leavesRows, ledger, requests, scenario, sim, told }: Evidence) {
  const violations: Array<string> = []
  const books = yield* sim.books
  const atStripe = yield* listAt<FailedCharge>(sim, "/v1/charges")
  const isOf = (entry: BookEntry, request: ChargeRequest) =>
    entry.customer === request.customerId && entry.item === (request.item ?? "") && sameScope(scopeOf(entry), request)
  const entriesOf = (request: ChargeRequest) => books.filter((entry) => isOf(entry, request))
  const paymentsOf = (request: ChargeRequest) => entriesOf(request).reduce((sum, entry) => sum + entry.payments, 0)
  const neededMinor = scenario.caps.map(() => 0n)

  for (const [index, request] of requests.entries()) {
    const { chargeKey } = request
    const say = (problem: string) => violations.push(`${request.customerId} ${request.item ?? "-"} (${chargeKey.slice(0, 6)}): ${problem}`)
    const payments = paymentsOf(request)
    const record = yield* Effect.orDie(ledger.find(chargeKey))
    // A request that was lost on the way to the first worker, from somebody who asks once, was never taken.
    if (record === undefined && (leavesRows || mayBeAbsent(scenario, index)) && payments === 0) continue
    if (record === undefined) {
      if (payments > 1) say(`paid ${payments} times`)
      say("the ledger has forgotten it")
      continue
    }
    const events = yield* Effect.orDie(ledger.events(chargeKey))
    if (leavesRows && record.state === "planned" && payments === 0 && record.quarantine === null) continue
    for (const problem of chargeProblems({ record, events, payments, paidMinor: entriesOf(request).reduce((sum, { amountMinor }) => sum + amountMinor, 0) })) say(problem)
    const planned = scenario.charges[index]!
    neededMinor[planned.cap]! += heldMinor(record)
    const retried = isRetried(scenario)
    if (isGood(planned) && fits(scenario, planned.cap) && !retried && record.state !== "succeeded") say(`a good card and room enough, and ${record.state} (${JSON.stringify(record.outcome)})`)
    if (record.state === "rejected" && (fits(scenario, planned.cap) || record.outcome?._tag !== "Rejected" || record.outcome.code !== "cap_exceeded")) say(`rejected without reason: ${JSON.stringify(record.outcome)}`)
    // A refusal of the customer's bank leaves a failed charge at Stripe; one that is recorded without it was never given.
    const refusals = events.filter(({ from, to }) => from !== to && (to === "declined" || to === "requires_action")).length
    const failures = atStripe.filter(({ metadata, status }) => status === "failed" && metadata["charge_key"] === chargeKey).length
    if (refusals > failures && scenario.gateway !== "invoices") say(`${refusals} refusals are recorded, and Stripe knows of ${failures}`)
  }

  for (const entry of books) {
    const known = requests.some((request) => isOf(entry, request))
    if (!known && entry.payments > 0) violations.push(`a payment of ${entry.customer} ${entry.item} (${scopeText(scopeOf(entry))}) was never asked for`)
  }
  const reports = yield* Effect.orDie(cap.report())
  for (const [index, one] of scenario.caps.entries()) {
    const paidMinor = books.reduce((sum, entry) => entry.payments > 0 && sameScope(scopeOf(entry), one) ? sum + BigInt(entry.amountMinor) : sum, 0n)
    if (paidMinor > one.capMinor) violations.push(`${paidMinor} was paid under a cap of ${one.capMinor} (${scopeText(one)})`)
    const held = reports.find((report) => sameScope(report, one))?.reservedMinor
    if (held !== neededMinor[index]) violations.push(`the cap holds ${held} for charges that need ${neededMinor[index]} (${scopeText(one)})`)
  }

  for (const { outcome, request } of told) {
    if (outcome.chargeKey !== request.chargeKey) {
      violations.push(`whoever asked for ${request.chargeKey.slice(0, 6)} was given the answer to ${outcome.chargeKey.slice(0, 6)}`)
    } else if (outcome._tag === "Succeeded" && paymentsOf(request) === 0) {
      violations.push(`${request.chargeKey.slice(0, 6)}: a client was told that it is paid, and it is not`)
    } else if (movedNothing(outcome)) {
      const events = yield* Effect.orDie(ledger.events(request.chargeKey))
      if (!events.some(({ to }) => to === "declined" || to === "rejected" || to === "canceled")) {
        violations.push(`${request.chargeKey.slice(0, 6)}: a client was told ${outcome._tag}, which was never recorded`)
      }
    }
  }
  return violations
})
