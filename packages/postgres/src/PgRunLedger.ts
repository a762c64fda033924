/**
 * The run book on PostgreSQL (or PGlite). `plan` is one transaction of set-based statements, so that a run of a million rows
 * is in the ledger entirely or not at all. Lines are paged by key, never by offset.
 */
import { BillingPeriod, ChargeKey, type ChargeTerms, Currency, type DuplicateRows, type LedgerError, RunLedger, type RunRow, type UnpaidRow } from "@purser/core"
import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { decodeRows, requestFields, requestOf, StateColumn } from "./internal/chargeRow.ts"
import { isRolledBack, isTaken, ledgerUnavailable, retryRolledBack, type StoreFailure } from "./internal/failures.ts"
import { integer, integers, text, texts } from "./internal/params.ts"
import { requestColumns } from "./internal/requestColumns.ts"
import * as Sql from "./internal/runSql.ts"

/** From this many new rows on, and where they are more than one in so many of those that the planner knows of, it gets new statistics. */
const analyzeFrom = 256
const analyzeShare = 5

/** Lines that one statement looks through for pending rows, unless a page is larger. */
const linesMax = 65_536

/** Before the first and the last line that the book can number. */
const lineMin = -(2 ** 31)
const lineMax = 2 ** 31 - 1

const NullText = Schema.NullOr(Schema.String)
const RowState = Schema.Union([StateColumn, Schema.Literals(["conflict", "quarantined", "staged"])])

const DuplicateRow = Schema.Struct({
  charge_key: ChargeKey,
  customer_id: Schema.String,
  billing_period: Schema.String,
  item: NullText,
  lines: Schema.Array(Schema.Int)
})
const TotalRow = Schema.Struct({
  namespace: Schema.String,
  billing_period: BillingPeriod,
  currency: Currency,
  rows: Schema.BigInt,
  amount_minor: Schema.String,
  covered_minor: Schema.String,
  present: Schema.BigInt
})
const KnownRow = Schema.Struct({ known: Schema.Finite })
const LockRow = Schema.Struct({ planned: Schema.Boolean })
const PlanRow = Schema.Struct({ planned: Schema.BigInt, rows: Schema.BigInt })
const LineRow = Schema.Struct({ ...requestFields, payment_method: NullText, line: Schema.Int })
const ReportRow = Schema.Struct({
  ...LineRow.fields,
  state: RowState,
  payment_intent_id: NullText,
  received_minor: Schema.BigInt,
  settled_before: Schema.Boolean,
  detail: NullText
})
const SummaryRow = Schema.Struct({
  currency: Currency,
  state: RowState,
  rows: Schema.BigInt,
  amount_minor: Schema.String,
  received_minor: Schema.String,
  settled_before: Schema.BigInt
})
const TermsRow = Schema.Struct({ charge_key: ChargeKey, amount_minor: Schema.BigInt, currency: Schema.String, stripe_customer_id: Schema.String, payment_method: NullText })
const LastRow = Schema.Struct({ line: Schema.Int })
const AddedRow = Schema.Struct({ added: Schema.BigInt })
const UnpaidLine = Schema.Struct({ ...LineRow.fields, state: Schema.Literals(["declined", "rejected"]), attempt: Schema.Int })

const rowOf = (row: typeof LineRow.Type): Effect.Effect<RunRow, Schema.SchemaError> =>
  Effect.map(requestOf(row, row.payment_method), (request) => ({ line: row.line, chargeKey: row.charge_key, request }))
const unpaidOf = (row: typeof UnpaidLine.Type): Effect.Effect<UnpaidRow, Schema.SchemaError> =>
  Effect.map(rowOf(row), (line) => ({ ...line, state: row.state, attempt: row.attempt }))

const make = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  /** Rows that this process has staged, by run, as long as they are not planned. To count them in the table would be to read them once more. */
  const staged = new Map<string, number>()
  const forget = (runId: string) => Effect.sync(() => staged.delete(runId))

  const send = (operation: string, statement: string, params: ReadonlyArray<unknown>): Effect.Effect<void, LedgerError> =>
    Effect.asVoid(retryRolledBack(sql.unsafe(statement, params))).pipe(Effect.mapError(ledgerUnavailable(operation)))
  const ask = <S extends Schema.Top & { readonly DecodingServices: never }>(statement: string, params: ReadonlyArray<unknown>, schema: S) =>
    Effect.flatMap(sql.unsafe(statement, params), decodeRows(schema))
  const query = <S extends Schema.Top & { readonly DecodingServices: never }, A>(
    operation: string,
    statement: string,
    params: ReadonlyArray<unknown>,
    schema: S,
    map: (row: S["Type"]) => Effect.Effect<A, StoreFailure>
  ): Effect.Effect<ReadonlyArray<A>, LedgerError> =>
    retryRolledBack(ask(statement, params, schema)).pipe(
      Effect.flatMap((rows) => Effect.forEach(rows, map)),
      Effect.mapError(ledgerUnavailable(operation))
    )

  /** A run's rows are none to the planner as long as no statistics tell of them: it would then look up each by itself. Without them everything is right, and slower. */
  const analyzeGrown = Effect.fnUntraced(function*(table: "charges" | "run_rows", newRows: number) {
    if (newRows < analyzeFrom) return
    const [before] = yield* ask(Sql.known(table), [], KnownRow)
    if (before === undefined || newRows * analyzeShare < before.known) return
    yield* sql.withTransaction(Effect.forEach(Sql.analyze(table), (statement) => sql.unsafe(statement), { discard: true }))
  }, (effect) => Effect.ignore(effect))

  const planOnce = Effect.fnUntraced(function*(runId: string, planRows: string, part: number) {
    const [lock] = yield* ask(Sql.lockRun, [text(runId)], LockRow)
    let planned = 0n
    let rows = 0n
    for (let after = lineMin;;) {
      const [end] = yield* ask(Sql.endOfPart, [text(runId), integer(after), integer(part)], LastRow)
      if (end === undefined || end.line === after) break
      const [counts] = yield* ask(planRows, [text(runId), integer(after), integer(end.line)], PlanRow)
      planned += counts?.planned ?? 0n
      rows += counts?.rows ?? 0n
      after = end.line
    }
    const present = rows - planned
    // What a run that goes on finds settled, it settled itself.
    if (lock?.planned !== true && present > 0n) yield* sql.unsafe(Sql.markSettled, [text(runId)])
    yield* sql.unsafe(Sql.setPlanned, [text(runId), planned, present])
    return { planned: Number(planned), present: Number(present) }
  })

  const lastLine = (runId: string) => Effect.map(query("find last line", Sql.lastLine, [text(runId)], LastRow, Effect.succeed), ([row]) => row?.line ?? 0)

  /** A page of rows that are wanted. Looks through as many lines as it needs where nearly all are, and through more and more where few are. */
  const paged = Effect.fnUntraced(function*<A>(
    runId: string, afterLine: number, limit: number, throughLine: number, page: (lines: ReadonlyArray<unknown>) => Effect.Effect<ReadonlyArray<A>, LedgerError>
  ): Effect.fn.Return<ReadonlyArray<A>, LedgerError> {
    const last = Math.min(throughLine, yield* lastLine(runId))
    const found: Array<A> = []
    let lines = limit + Math.ceil(limit / 4)
    for (let after = afterLine; after < last && found.length < limit; lines = Math.min(2 * lines, Math.max(limit, linesMax))) {
      const through = Math.min(last, after + lines)
      found.push(...yield* page([text(runId), integer(after), integer(limit - found.length), integer(through)]))
      after = through
    }
    return found
  })

  /** Whoever waits for a plan's part while the next one waits for them is not met again by a plan in one part: both write in the order of the key. */
  const planBy = (runId: string, planRows: string): Effect.Effect<{ readonly planned: number; readonly present: number }, StoreFailure> => {
    const inParts = (part: number) => sql.withTransaction(planOnce(runId, planRows, part))
    return Effect.catchIf(inParts(Sql.planPart), isRolledBack, () => retryRolledBack(inParts(lineMax)))
  }

  return RunLedger.of({
    begin: ({ runId, source }) => Effect.andThen(forget(runId), send("begin run", Sql.begin, [text(runId), text(source)])),
    stage: (runId, rows) => {
      const requests = rows.map((row) => row.request)
      const columns = [
        text(runId),
        integers(rows.map((row) => row.line)),
        texts(rows.map((row) => row.chargeKey)),
        ...requestColumns(requests),
        integers(requests.map((request) => request.revision ?? 0))
      ]
      return Effect.asVoid(Effect.catchIf(retryRolledBack(sql.unsafe(Sql.stageNew, columns)), isTaken, () => retryRolledBack(sql.unsafe(Sql.stage, columns)))).pipe(
        Effect.mapError(ledgerUnavailable("stage rows")),
        Effect.tap(() => Effect.sync(() => staged.set(runId, (staged.get(runId) ?? 0) + rows.length)))
      )
    },
    duplicates: (runId, limit) =>
      // The first look at all rows that were staged, and not the last one.
      Effect.andThen(Effect.suspend(() => analyzeGrown("run_rows", staged.get(runId) ?? 0)), query("find duplicates", Sql.duplicates, [text(runId), integer(limit)], DuplicateRow, (row) =>
        Effect.succeed<DuplicateRows>({
          chargeKey: row.charge_key, customerId: row.customer_id, billingPeriod: row.billing_period, item: row.item, lines: row.lines
        }))),
    totals: (runId) =>
      query("sum run", Sql.totals, [text(runId)], TotalRow, (row) =>
        Effect.succeed({
          namespace: row.namespace,
          billingPeriod: row.billing_period,
          currency: row.currency,
          rows: Number(row.rows),
          amountMinor: BigInt(row.amount_minor),
          coveredMinor: BigInt(row.covered_minor),
          presentRows: Number(row.present)
        })),
    plan: (runId, isNew = false) =>
      (isNew ? Effect.catchIf(planBy(runId, Sql.planNewRows), isTaken, () => planBy(runId, Sql.planRows)) : planBy(runId, Sql.planRows)).pipe(
        Effect.mapError(ledgerUnavailable("plan run")),
        Effect.tap(({ planned }) => Effect.andThen(forget(runId), analyzeGrown("charges", planned)))
      ),
    discard: (runId) => Effect.andThen(forget(runId), send("discard run", Sql.discard, [text(runId)])),
    pending: (runId, afterLine, limit, throughLine = lineMax) =>
      paged(runId, afterLine, limit, throughLine, (lines) => query("page pending rows", Sql.pending, lines, LineRow, rowOf)),
    report: (runId, afterLine, limit) =>
      query("report run", Sql.report, [text(runId), integer(afterLine), integer(limit)], ReportRow, (row) =>
        Effect.map(rowOf(row), (line) => ({
          ...line,
          state: row.state,
          paymentIntentId: row.payment_intent_id,
          receivedMinor: Number(row.received_minor),
          detail: row.detail,
          settledBefore: row.settled_before
        }))),
    termsOf: (runId, chargeKeys) =>
      Effect.map(
        query("look up rows", Sql.termsOf, [text(runId), texts(chargeKeys)], TermsRow, (row) =>
          Effect.succeed<readonly [ChargeKey, ChargeTerms]>([row.charge_key, {
            amountMinor: Number(row.amount_minor), currency: row.currency, stripeCustomerId: row.stripe_customer_id, paymentMethod: row.payment_method
          }])),
        (rows) => new Map(rows)
      ),
    summary: (runId) =>
      query("summarise run", Sql.summary, [text(runId)], SummaryRow, (row) =>
        Effect.succeed({
          currency: row.currency,
          state: row.state,
          rows: Number(row.rows),
          amountMinor: BigInt(row.amount_minor),
          receivedMinor: BigInt(row.received_minor),
          settledBefore: Number(row.settled_before)
        })),
    unpaid: (runId, states, afterLine, limit) =>
      paged(runId, afterLine, limit, lineMax, (lines) => query("page unpaid rows", Sql.unpaid, [...lines, texts(states)], UnpaidLine, unpaidOf)),
    lastLine,
    absorb: (runId, unplannedRunId) =>
      Effect.map(Effect.andThen(forget(unplannedRunId), query("extend run", Sql.absorb, [text(runId), text(unplannedRunId)], AddedRow, Effect.succeed)), ([row]) => Number(row?.added ?? 0n)),
    finish: (runId, state) => send("finish run", Sql.finish, [text(runId), text(state)])
  })
})

/** The run book's layer. */
export const PgRunLedger: {
  /** The run book on the tables of `Migrations`; it plans into the charges of `PgLedger`. */
  readonly layer: Layer.Layer<RunLedger, never, SqlClient.SqlClient>
} = { layer: Layer.effect(RunLedger, make) }
