/**
 * The spend cap on PostgreSQL (or PGlite). Checking and taking room is one function call under the row lock of the cap,
 * which serialises all processes: together they take exactly what fits. Calls of many fibers share one call, and a batch
 * writes each cap's row once. All sums are `bigint`, in the database and here.
 */
import {
  BillingPeriod, CapAlreadyOpen, CapClosed, CapExceeded, CapMissing, capOf, type CapReport, type CapScope, type ChargeKey, Currency, type Reservation,
  SpendCap, SpendCapError, type SpendCapErrorReason
} from "@purser/core"
import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import * as Sql from "./internal/capSql.ts"
import { decodeRows } from "./internal/chargeRow.ts"
import { capUnavailable, Contended, isBadInput, retryRolledBack, type StoreFailure } from "./internal/failures.ts"
import * as GroupCommit from "./internal/groupCommit.ts"
import { bigints, booleans, integer, integers, text, texts } from "./internal/params.ts"

/** Settings of the cap. */
export interface PgSpendCapOptions {
  /** Calls in one statement at the most; 512 by default. */
  readonly batchMax?: number
}

interface Wish extends Reservation {
  readonly forced: boolean
}

const Decision = Schema.Struct({
  ord: Schema.Int,
  verdict: Schema.Literals(["reserved", "held", "missing", "closed", "exceeded"]),
  cap_minor: Schema.NullOr(Schema.BigInt),
  reserved_minor: Schema.NullOr(Schema.BigInt)
})
const decodeDecisions = decodeRows(Decision)

const CapRow = Schema.Struct({
  namespace: Schema.String,
  billing_period: BillingPeriod,
  currency: Currency,
  expected_minor: Schema.BigInt,
  headroom_percent: Schema.Int,
  cap_minor: Schema.BigInt,
  reserved_minor: Schema.BigInt,
  reservations: Schema.BigInt,
  closed: Schema.Boolean
})
const decodeCaps = decodeRows(CapRow)

const reportOf = (row: typeof CapRow.Type): CapReport => ({
  namespace: row.namespace,
  billingPeriod: row.billing_period,
  currency: row.currency,
  expectedMinor: row.expected_minor,
  headroomPercent: row.headroom_percent,
  capMinor: row.cap_minor,
  reservedMinor: row.reserved_minor,
  reservations: Number(row.reservations),
  closed: row.closed
})

/** Errors carry figures as numbers; one that no number holds exactly is told as the largest that does. */
const figure = (minor: bigint | null): number => {
  const most = BigInt(Number.MAX_SAFE_INTEGER)
  return Number(minor === null ? 0n : minor > most ? most : minor)
}

const fail = (reason: SpendCapErrorReason, chargeKey: ChargeKey | null = null) => Effect.fail(new SpendCapError({ reason, chargeKey }))

const make = Effect.fnUntraced(function*(options: PgSpendCapOptions) {
  const sql = yield* SqlClient.SqlClient
  const limits = { splits: isBadInput, maxSize: options.batchMax ?? 512, inFlight: 1 }

  const decide = yield* GroupCommit.make<Wish, typeof Decision.Type, StoreFailure>({
    ...limits,
    operation: "reserve",
    keyOf: (wish) => wish.chargeKey,
    execute: (wishes) =>
      retryRolledBack(Effect.flatMap(
        sql.unsafe(Sql.reserve, [
          texts(wishes.map((wish) => wish.chargeKey)),
          texts(wishes.map((wish) => wish.namespace)),
          texts(wishes.map((wish) => wish.billingPeriod)),
          texts(wishes.map((wish) => wish.currency)),
          integers(wishes.map((wish) => wish.attempt)),
          bigints(wishes.map((wish) => wish.amountMinor)),
          booleans(wishes.map((wish) => wish.forced))
        ]),
        decodeDecisions
      )).pipe(Effect.map((rows) => rows.toSorted((a, b) => a.ord - b.ord)))
  })
  const release = yield* GroupCommit.make<{ readonly chargeKey: ChargeKey; readonly attempt: number }, void, StoreFailure>({
    ...limits,
    operation: "release",
    keyOf: (input) => input.chargeKey,
    execute: (inputs) =>
      retryRolledBack(
        Effect.map(
          sql.unsafe(Sql.release, [texts(inputs.map((input) => input.chargeKey)), integers(inputs.map((input) => input.attempt))]),
          () => inputs.map(() => undefined)
        )
      )
  })

  const wish = Effect.fnUntraced(function*(input: Reservation, forced: boolean): Effect.fn.Return<bigint, SpendCapError> {
    const { billingPeriod, chargeKey, currency } = input
    const found = yield* Effect.mapError(decide({ ...input, forced }), capUnavailable("reserve", chargeKey))
    switch (found.verdict) {
      case "missing":
        return yield* fail(new CapMissing({ billingPeriod, currency }), chargeKey)
      case "closed":
        return yield* fail(new CapClosed({ billingPeriod, currency }), chargeKey)
      case "exceeded":
        return yield* fail(
          new CapExceeded({
            billingPeriod, currency, capMinor: figure(found.cap_minor), reservedMinor: figure(found.reserved_minor), requestedMinor: input.amountMinor
          }),
          chargeKey
        )
      default: {
        const over = (found.reserved_minor ?? 0n) - (found.cap_minor ?? 0n)
        return over > 0n ? over : 0n
      }
    }
  })

  const caps = (operation: string, statement: string, params: ReadonlyArray<unknown>) =>
    retryRolledBack(Effect.flatMap(sql.unsafe(statement, params), decodeCaps)).pipe(Effect.mapError(capUnavailable(operation)))
  /** What another process has just written may be too young for the statement's snapshot to show: the second look sees it. */
  const capsSeen = (operation: string, statement: string, params: ReadonlyArray<unknown>) =>
    Effect.flatMap(caps(operation, statement, params), (rows) => rows.length === 0 ? caps(operation, statement, params) : Effect.succeed(rows))
  const scope = (of: CapScope) => [text(of.namespace), text(of.billingPeriod), text(of.currency)]
  const one = (of: CapScope, rows: ReadonlyArray<typeof CapRow.Type>) =>
    rows[0] === undefined ? fail(new CapMissing({ billingPeriod: of.billingPeriod, currency: of.currency })) : Effect.succeed(reportOf(rows[0]))

  return SpendCap.of({
    store: sql,
    open: Effect.fnUntraced(function*(input) {
      const capMinor = capOf(input.expectedMinor, input.headroomPercent)
      const params = [...scope(input), input.expectedMinor, integer(input.headroomPercent), capMinor, text(input.runId === undefined ? null : `run ${input.runId}`)]
      const [row] = yield* capsSeen("open", Sql.open, params)
      if (row === undefined) return yield* Effect.fail(capUnavailable("open")(new Contended({ operation: "open" })))
      if (row.expected_minor === input.expectedMinor && row.headroom_percent === input.headroomPercent) return reportOf(row)
      return yield* fail(
        new CapAlreadyOpen({
          billingPeriod: input.billingPeriod, currency: input.currency, capMinor: figure(row.cap_minor), requestedMinor: figure(capMinor)
        })
      )
    }),
    reserve: (input) => Effect.asVoid(wish(input, false)),
    reserveByForce: (input) => wish(input, true),
    release: (chargeKey, attempt) => Effect.mapError(release({ chargeKey, attempt }), capUnavailable("release", chargeKey)),
    raise: (input) =>
      Effect.flatMap(
        caps("raise", Sql.raise, [
          ...scope(input), input.expectedMinor, integer(input.headroomPercent), capOf(input.expectedMinor, input.headroomPercent),
          text(input.actor), text(input.reason)
        ]),
        (rows) => one(input, rows)
      ),
    close: (of, act) =>
      Effect.asVoid(Effect.flatMap(capsSeen("close", Sql.close, [...scope(of), text(act?.actor ?? null), text(act?.reason ?? null)]), (rows) => one(of, rows))),
    reopen: (input) =>
      Effect.flatMap(capsSeen("reopen", Sql.reopen, [...scope(input), text(input.actor), text(input.reason)]), (rows) => one(input, rows)),
    report: (billingPeriod) =>
      Effect.map(caps("report", Sql.report, [text(billingPeriod ?? null)]), (rows) => rows.map(reportOf))
  })
})

/** The cap's layers. */
export const PgSpendCap: {
  /** The cap on the tables of `Migrations`. */
  readonly layer: Layer.Layer<SpendCap, never, SqlClient.SqlClient>
  /** With options. */
  readonly layerWith: (options: PgSpendCapOptions) => Layer.Layer<SpendCap, never, SqlClient.SqlClient>
} = {
  layer: Layer.effect(SpendCap, make({})),
  layerWith: (options) => Layer.effect(SpendCap, make(options))
}
