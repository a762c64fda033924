/**
 * The verdict on a run of processes that is over: the simulator's books against every row, its trail and the cap, read from the
 * database itself. The judgement of one charge is that of the simulated worlds.
 */
import { type BillingPeriod, type ChargeRecord, Ledger, SpendCap } from "@purser/core"
import { type DatabaseServices, PgLedger, PgSpendCap } from "@purser/postgres"
import type { StripeSimShape } from "@purser/stripe-sim"
import { chargeProblems, heldMinor } from "@purser/test-simulation/src/History.ts"
import { Effect, Layer } from "effect"

/** What was handed over to be charged. */
export interface Bill {
  readonly customer: string
  readonly amountMinor: number
  /** Its card is refused, always. */
  readonly declined: boolean
}

/** What the account of the run says. */
export interface RunAccount {
  readonly succeeded: number
  readonly declined: number
  readonly paidMinor: number
}

const pageSize = 500

const rowsOf = Effect.fnUntraced(function*(ledger: Ledger["Service"], period: string) {
  const rows: Array<ChargeRecord> = []
  for (;;) {
    const page = yield* ledger.page(period, rows.at(-1)?.chargeKey ?? "", pageSize)
    rows.push(...page)
    if (page.length < pageSize) return rows
  }
})

/** Everything that is wrong with one period; nothing when the promise was kept. */
export const judge = Effect.fnUntraced(function*(input: {
  readonly database: Layer.Layer<DatabaseServices, unknown>
  readonly sim: StripeSimShape
  readonly period: BillingPeriod
  readonly bills: ReadonlyArray<Bill>
  readonly account: RunAccount
}) {
  const { account, bills, database, period, sim } = input
  const violations: Array<string> = []
  const books = new Map((yield* sim.books).filter(({ billingPeriod }) => billingPeriod === period).map((entry) => [entry.customer, entry]))
  const context = yield* Layer.build(Layer.mergeAll(PgLedger.layer, PgSpendCap.layer).pipe(Layer.provide(Layer.fresh(database))))
  const ledger = yield* Effect.provide(Ledger, context)
  const cap = yield* Effect.provide(SpendCap, context)
  const rows = new Map((yield* rowsOf(ledger, period)).map((record) => [record.request.customerId, record]))
  let neededMinor = 0n
  let paidMinor = 0

  yield* Effect.forEach(bills, (bill) =>
    Effect.gen(function*() {
      const say = (problem: string) => violations.push(`${bill.customer}: ${problem}`)
      const entry = books.get(bill.customer)
      const record = rows.get(bill.customer)
      if (record === undefined) return void say(`the ledger has forgotten it; payments: ${entry?.payments ?? 0}`)
      const events = yield* ledger.events(record.chargeKey)
      for (const problem of chargeProblems({ record, events, payments: entry?.payments ?? 0, paidMinor: entry?.amountMinor ?? 0 })) say(problem)
      if (record.request.amountMinor !== bill.amountMinor) say(`the row has ${record.request.amountMinor}, the bill ${bill.amountMinor}`)
      const wanted = bill.declined ? "declined" : "succeeded"
      if (record.state !== wanted) say(`${record.state}, which should be ${wanted}`)
      neededMinor += heldMinor(record)
      paidMinor += entry?.amountMinor ?? 0
    }), { concurrency: 8, discard: true })

  const known = new Set(bills.map(({ customer }) => customer))
  for (const [customer, { payments }] of books) if (!known.has(customer) && payments > 0) violations.push(`a payment of ${customer} was never asked for`)
  for (const customer of rows.keys()) if (!known.has(customer)) violations.push(`the row of ${customer} was never asked for`)
  const [report] = yield* cap.report(period)
  if (report === undefined) violations.push("there is no cap")
  else {
    if (BigInt(paidMinor) > report.capMinor) violations.push(`${paidMinor} was paid under a cap of ${report.capMinor}`)
    if (report.reservedMinor !== neededMinor) violations.push(`the cap holds ${report.reservedMinor} for charges that need ${neededMinor}`)
  }
  const paid = bills.filter(({ declined }) => !declined).length
  if (account.succeeded !== paid || account.declined !== bills.length - paid || account.paidMinor !== paidMinor) {
    violations.push(`the run accounts for ${JSON.stringify(account)}, the books for ${paid} payments of ${paidMinor} in all`)
  }
  return violations
}, Effect.scoped)
