/** The account of a run: counts that add up to the file, the summary for people and machines, and the report file. */
import { type CapReport, type Currency, Money, type RunRowReport, type RunStateTotal } from "@purser/core"
import { capShare } from "../ui/ChargeStates.ts"
import { table } from "../ui/table.ts"

/** Rows per state, in the words of the machine contract. */
export interface RunCounts {
  readonly rows: number
  readonly succeeded: number
  readonly declined: number
  readonly rejected: number
  readonly processing: number
  readonly requiresAction: number
  readonly conflict: number
  readonly unresolved: number
  /** How many of the rows above had been settled before this run; they are counted in their state too. */
  readonly alreadySettled: number
}

type Counted = Exclude<keyof RunCounts, "rows" | "alreadySettled">

/** A canceled charge moved no money and is final: it counts with the rejected ones. */
const countedAs: Record<RunRowReport["state"], Counted> = {
  succeeded: "succeeded",
  declined: "declined",
  rejected: "rejected",
  canceled: "rejected",
  processing: "processing",
  requires_action: "requiresAction",
  conflict: "conflict",
  planned: "unresolved",
  claimed: "unresolved",
  attached: "unresolved",
  quarantined: "unresolved",
  staged: "unresolved"
}

/** Counts of a run; `refusedRows` were left out because they could not be read, `retriedRows` were settled before and tried again by it. */
export const countsOf = (summary: ReadonlyArray<RunStateTotal>, refusedRows: number, retriedRows: number): RunCounts => {
  const counts: Record<Counted, number> = {
    succeeded: 0, declined: 0, rejected: refusedRows, processing: 0, requiresAction: 0, conflict: 0, unresolved: 0
  }
  let rows = refusedRows
  let alreadySettled = -retriedRows
  for (const total of summary) {
    counts[countedAs[total.state]] += total.rows
    rows += total.rows
    // A row in conflict is not the charge that was settled.
    if (total.state !== "conflict") alreadySettled += total.settledBefore
  }
  return { rows, ...counts, alreadySettled }
}

/** Sums per currency, in minor units. */
export interface RunSums {
  readonly expectedMinor: Readonly<Record<string, number>>
  readonly paidMinor: Readonly<Record<string, number>>
  readonly capMinor: Readonly<Record<string, number>>
}

const add = (sums: Map<string, bigint>, currency: string, amount: bigint) => sums.set(currency, (sums.get(currency) ?? 0n) + amount)
const toNumbers = (sums: Map<string, bigint>) => Object.fromEntries([...sums].map(([currency, sum]) => [currency, Number(sum)]))

/** Sums of a run: what was paid for its rows, and the figures of its caps. */
export const sumsOf = (summary: ReadonlyArray<RunStateTotal>, caps: ReadonlyArray<CapReport>): RunSums => {
  const expected = new Map<string, bigint>()
  const paid = new Map<string, bigint>()
  const cap = new Map<string, bigint>()
  for (const total of summary) add(paid, total.currency, total.receivedMinor)
  for (const one of caps) {
    add(expected, one.currency, one.expectedMinor)
    add(cap, one.currency, one.capMinor)
  }
  return { expectedMinor: toNumbers(expected), paidMinor: toNumbers(paid), capMinor: toNumbers(cap) }
}

/** The summary as people read it. Of a run that was canceled, or that no worker let in, rows that nobody has begun are no riddle. */
export const summaryText = (counts: RunCounts, summary: ReadonlyArray<RunStateTotal>, caps: ReadonlyArray<CapReport>, isUnbegunUnsent = false): string => {
  const unsent = isUnbegunUnsent ? summary.reduce((sum, { rows, state }) => state === "planned" || state === "staged" ? sum + rows : sum, 0) : 0
  const states = [
    ["succeeded", counts.succeeded],
    ["declined", counts.declined],
    ["rejected", counts.rejected],
    ["processing", counts.processing],
    ["requires action", counts.requiresAction],
    ["conflict", counts.conflict],
    ["not sent", unsent],
    ["unresolved", counts.unresolved - unsent]
  ] as const
  const money = [...Map.groupBy(summary, (total) => total.currency)].map(([currency, totals]) => {
    const billed = totals.reduce((sum, total) => sum + total.amountMinor, 0n)
    const paid = totals.reduce((sum, total) => sum + total.receivedMinor, 0n)
    const open = caps.filter((cap) => cap.currency === currency)
    const used = open.reduce((sum, cap) => sum + cap.reservedMinor, 0n)
    const limit = open.reduce((sum, cap) => sum + cap.capMinor, 0n)
    const text = (amount: bigint) => Money.formatMinor(amount, currency)
    return [currency.toUpperCase(), text(billed), text(paid), text(limit), text(used), capShare({ capMinor: limit, reservedMinor: used })]
  })
  const settled = counts.alreadySettled === 0 ? "" : `, ${counts.alreadySettled} of them settled before this run`
  return [
    table(["state", "rows"], states.filter(([, rows]) => rows > 0).map(([name, rows]) => [name, String(rows)]), [1]),
    `${counts.rows} rows${settled}`,
    "",
    table(["currency", "billed", "paid", "cap", "cap used", ""], money, [1, 2, 3, 4, 5])
  ].join("\n")
}

const cell = (value: string | number | null): string => {
  const text = value === null ? "" : String(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll("\"", "\"\"")}"` : text
}

/** A refused row in the report. */
export interface RefusedRow {
  readonly line: number
  readonly detail: string
}

/** The report's header line. */
export const reportHeader =
  "line,customer_id,billing_period,item,amount,currency,state,payment_intent,received,already_settled,charge_key,detail\n"

/** The words of the counts, as file columns spell them, so that the report's rows add up to the counts. */
const stateWord = (state: RunRowReport["state"]): string =>
  countedAs[state] === "requiresAction" ? "requires_action" : countedAs[state]

/** One line of the report. */
export const reportLine = (row: RunRowReport): string => {
  const { request } = row
  const currency: Currency = request.currency
  return `${
    [
      row.line,
      request.customerId,
      request.billingPeriod,
      request.item ?? "",
      Money.formatMinor(request.amountMinor, currency),
      currency,
      stateWord(row.state),
      row.paymentIntentId,
      row.receivedMinor === 0 ? "" : Money.formatMinor(row.receivedMinor, currency),
      row.settledBefore ? "yes" : "no",
      row.chargeKey,
      row.detail ?? (stateWord(row.state) === row.state ? null : `the ledger says ${row.state}`)
    ].map(cell).join(",")
  }\n`
}

/** One line of the report for a row that could not be read. */
export const refusedLine = ({ detail, line }: RefusedRow): string => `${line},,,,,,rejected,,,no,,${cell(detail)}\n`
