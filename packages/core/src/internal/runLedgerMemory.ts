/** The run book over arrays and the memory ledger's rows. */
import { Clock, Effect } from "effect"
import type { ChargeKey } from "../ChargeKey.ts"
import { chargeTerms } from "../ChargeRequest.ts"
import { Ledger } from "../Ledger.ts"
import type { DuplicateRows, RunLedger, RunRow, RunRowReport, RunStateTotal, RunTotal, UnpaidRow } from "../RunLedger.ts"
import { memoryRows, plannedRow, sameTerms } from "./ledgerMemory.ts"

interface Run {
  rows: Array<RunRow>
  planned: boolean
  readonly settledBefore: Set<ChargeKey>
}

const open = new Set(["planned", "claimed", "attached"])

export const makeRunLedgerMemory: Effect.Effect<RunLedger["Service"], never, Ledger> = Effect.gen(function*() {
  const ledger = yield* Ledger
  const clock = yield* Clock.Clock
  const charges = memoryRows.get(ledger)
  if (charges === undefined) return yield* Effect.die(new Error("Bug: RunLedger.layerMemory works over Ledger.layerMemory only"))
  const runs = new Map<string, Run>()
  const run = (runId: string): Run => {
    const found = runs.get(runId) ?? { rows: [], planned: false, settledBefore: new Set() }
    runs.set(runId, found)
    return found
  }

  const reportRow = (book: Run, { chargeKey, line, request }: RunRow): RunRowReport => {
    const charge = book.planned ? charges.get(chargeKey) : undefined
    const conflict = charge !== undefined && !sameTerms(chargeTerms(charge.request), chargeTerms(request))
    const outcome = charge?.outcome ?? null
    return {
      line,
      chargeKey,
      request,
      state: charge === undefined ? "staged" : conflict ? "conflict" : charge.quarantine !== null ? "quarantined" : charge.state,
      paymentIntentId: charge?.paymentIntentId ?? null,
      receivedMinor: outcome?._tag === "Succeeded" && !conflict ? outcome.amountReceivedMinor : 0,
      detail: conflict
        ? `the ledger holds ${charge.request.amountMinor} ${charge.request.currency}`
        : charge?.quarantine ?? (outcome !== null && "detail" in outcome ? outcome.detail : null),
      settledBefore: book.settledBefore.has(chargeKey)
    }
  }
  const reports = (runId: string) => run(runId).rows.map((row) => reportRow(run(runId), row))

  return {
    begin: ({ runId }) =>
      Effect.sync(() => {
        const book = run(runId)
        if (!book.planned) book.rows = []
      }),
    stage: (runId, rows) =>
      Effect.sync(() => {
        const book = run(runId)
        const known = new Set(book.rows.map(({ line }) => line))
        for (const row of rows) if (!known.has(row.line)) book.rows.push(row)
      }),
    duplicates: (runId, limit) =>
      Effect.sync(() => {
        const byKey = Map.groupBy(run(runId).rows, (row) => row.chargeKey)
        return [...byKey].filter(([, rows]) => rows.length > 1).slice(0, limit).map(([chargeKey, rows]): DuplicateRows => ({
          chargeKey,
          customerId: rows[0]!.request.customerId,
          billingPeriod: rows[0]!.request.billingPeriod,
          item: rows[0]!.request.item ?? null,
          lines: rows.map((row) => row.line)
        }))
      }),
    totals: (runId) =>
      Effect.sync(() => {
        const groups = Map.groupBy(run(runId).rows, ({ request: r }) => JSON.stringify([r.namespace, r.billingPeriod, r.currency]))
        return [...groups.values()].map((rows): RunTotal => {
          const { billingPeriod, currency, namespace } = rows[0]!.request
          // The memory ledger cannot see the cap: a charge in work is taken to hold its room.
          const covered = rows.filter(({ chargeKey, request }) => {
            const charge = charges.get(chargeKey)
            return charge !== undefined && (charge.state !== "planned" || !sameTerms(chargeTerms(charge.request), chargeTerms(request)))
          })
          const sum = (list: ReadonlyArray<RunRow>) => list.reduce((total, row) => total + BigInt(row.request.amountMinor), 0n)
          return { namespace, billingPeriod, currency, rows: rows.length, amountMinor: sum(rows), coveredMinor: sum(covered), presentRows: rows.filter(({ chargeKey }) => charges.has(chargeKey)).length }
        })
      }),
    plan: (runId) =>
      Effect.sync(() => {
        const book = run(runId)
        let planned = 0
        for (const { chargeKey, request } of book.rows) {
          const charge = charges.get(chargeKey)
          if (charge === undefined) {
            charges.set(chargeKey, plannedRow(request, chargeKey, clock.currentTimeMillisUnsafe()))
            planned += 1
          } else if (!open.has(charge.state)) book.settledBefore.add(chargeKey)
        }
        book.planned = true
        return { planned, present: book.rows.length - planned }
      }),
    discard: (runId) => Effect.sync(() => void (run(runId).planned || runs.delete(runId))),
    pending: (runId, afterLine, limit, throughLine = Number.MAX_SAFE_INTEGER) =>
      Effect.sync(() =>
        reports(runId)
          .filter((row) => row.line > afterLine && row.line <= throughLine && open.has(row.state))
          .filter((row) => charges.get(row.chargeKey)!.leaseUntilMs <= clock.currentTimeMillisUnsafe())
          .slice(0, limit)
          .map(({ chargeKey, line, request }) => ({ chargeKey, line, request }))
      ),
    report: (runId, afterLine, limit) => Effect.sync(() => reports(runId).filter((row) => row.line > afterLine).slice(0, limit)),
    termsOf: (runId, chargeKeys) =>
      Effect.sync(() => {
        const asked = new Set(chargeKeys)
        return new Map(run(runId).rows.filter(({ chargeKey }) => asked.has(chargeKey)).map(({ chargeKey, request }) => [chargeKey, chargeTerms(request)]))
      }),
    summary: (runId) =>
      Effect.sync(() => {
        const groups = Map.groupBy(reports(runId), (row) => `${row.request.currency} ${row.state}`)
        return [...groups.values()].map((rows): RunStateTotal => ({
          currency: rows[0]!.request.currency,
          state: rows[0]!.state,
          rows: rows.length,
          amountMinor: rows.reduce((sum, row) => sum + BigInt(row.request.amountMinor), 0n),
          receivedMinor: rows.reduce((sum, row) => sum + BigInt(row.receivedMinor), 0n),
          settledBefore: rows.filter((row) => row.settledBefore).length
        }))
      }),
    unpaid: (runId, states, afterLine, limit) =>
      Effect.sync(() =>
        reports(runId).filter(({ line }) => line > afterLine).flatMap(({ chargeKey, line, request, state: now }): ReadonlyArray<UnpaidRow> => {
          const state = states.find((one) => one === now)
          return state === undefined ? [] : [{ line, chargeKey, request, state, attempt: charges.get(chargeKey)!.attempt }]
        }).slice(0, limit)
      ),
    lastLine: (runId) => Effect.sync(() => run(runId).rows.reduce((last, { line }) => Math.max(last, line), 0)),
    absorb: (runId, unplannedRunId) =>
      Effect.sync(() => {
        const book = run(runId)
        const known = new Set(book.rows.map(({ chargeKey }) => chargeKey))
        const late = run(unplannedRunId).rows.filter(({ chargeKey }) => !known.has(chargeKey))
        const last = book.rows.reduce((line, row) => Math.max(line, row.line), 0)
        for (const [index, row] of late.entries()) book.rows.push({ ...row, line: last + index + 1 })
        runs.delete(unplannedRunId)
        return late.length
      }),
    finish: () => Effect.void
  }
})
