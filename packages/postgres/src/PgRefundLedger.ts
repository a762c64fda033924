/**
 * The book of refunds on PostgreSQL (or PGlite). A claim and a settlement are short transactions that hold one row; the
 * rule that they apply is core's, so that every store decides alike. Refunds are rare: nothing is batched here.
 */
import {
  asAlreadyRefundSettled, ChargeKey, decideRebill, decideRefund, type LedgerError, mayRecordRefund, type RebillAnswer, type RebillInput, type RefundablePayment, type RefundClaimAnswer, refundedElsewhere, RefundLedger,
  type RefundRequest, type RefundSettleAnswer, type RefundSettleInput, refundStateOf
} from "@purser/core"
import { type Config, Duration, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { decodeRows, recordOf, RecordRow } from "./internal/chargeRow.ts"
import { ledgerUnavailable, retryRolledBack, type StoreFailure } from "./internal/failures.ts"
import { leaseConfig } from "./internal/leaseConfig.ts"
import { double, integer, text } from "./internal/params.ts"
import {
  ClaimedRow, claimedRefundOf, HeldRow, LockedCharge, LockedRefund, RefundEventRow, refundEventOf, refundElsewhereOf, RefundElsewhereRow, refundOutcomeOf, refundRecordOf, RefundRow,
  RefundTotalRow, refundTotalOf, StoredRow
} from "./internal/refundRow.ts"
import * as Sql from "./internal/refundSql.ts"
import { MovementRow, movementOf } from "./internal/movementRow.ts"
import { movements as movementsSql } from "./internal/watchSql.ts"

const Successor = Schema.Struct({ charge_key: ChargeKey })
const OurRow = Schema.Struct({ processor_refund_id: Schema.String })
const GoneRow = Schema.Struct({ refunded_minor: Schema.BigInt, nothing_left: Schema.Boolean })

/** Settings of the book. */
export interface PgRefundLedgerOptions {
  /** How long a claim holds a refund. */
  readonly lease: Duration.Input
}

const make = Effect.fnUntraced(function*(options: PgRefundLedgerOptions) {
  const sql = yield* SqlClient.SqlClient
  const leaseMs = Duration.toMillis(Duration.fromInputUnsafe(options.lease))

  const ask = <S extends Schema.Top & { readonly DecodingServices: never }>(statement: string, params: ReadonlyArray<unknown>, schema: S) =>
    Effect.flatMap(sql.unsafe(statement, params), decodeRows(schema))
  const named = <A>(operation: string, chargeKey: ChargeKey | null, effect: Effect.Effect<A, StoreFailure>): Effect.Effect<A, LedgerError> =>
    Effect.mapError(retryRolledBack(effect), ledgerUnavailable(operation, chargeKey))

  /** What others gave back of a payment; read under the lock of the charge's row, after all that the book has made. */
  const elsewhere = Effect.fnUntraced(function*(chargeKey: ChargeKey, payment: RefundablePayment) {
    const movements = yield* ask(movementsSql, [text(chargeKey)], MovementRow)
    const ours = yield* ask(Sql.ours, [text(chargeKey)], OurRow)
    return refundedElsewhere(movements.map(movementOf), payment, new Set(ours.map((row) => row.processor_refund_id)))
  })

  const claimOnce = Effect.fnUntraced(function*(request: RefundRequest, worker: string): Effect.fn.Return<RefundClaimAnswer, StoreFailure> {
    const { chargeKey, refundKey } = request
    const [charge] = yield* ask(Sql.lockCharge, [text(chargeKey)], LockedCharge)
    const [stored] = yield* ask(Sql.stored, [text(refundKey)], StoredRow)
    const payment = request.payment ?? { paymentIntentId: charge?.outcome_payment_intent_id ?? null, chargeId: charge?.charge_id ?? null }
    const [held] = yield* ask(Sql.held, [text(chargeKey), text(payment.paymentIntentId)], HeldRow)
    const others = yield* elsewhere(chargeKey, payment)
    const decision = decideRefund(
      request,
      charge === undefined ? undefined : {
        state: charge.state,
        receivedMinor: request.payment?.receivedMinor ?? Number(charge.received_minor ?? 0n),
        heldMinor: Number(held?.held_minor ?? 0n),
        elsewhereMinor: others.heldMinor
      },
      stored === undefined ? undefined : {
        state: stored.state,
        amountMinor: Number(stored.amount_minor),
        leaseLeftMs: stored.lease_left_ms,
        outcome: refundOutcomeOf(stored)
      }
    )
    if (decision._tag === "Answer") return decision.answer
    if (decision._tag === "Again") yield* sql.unsafe(Sql.again, [text(refundKey), text(request.actor), text(request.note)])
    const rows = yield* decision._tag !== "Insert" || charge === undefined
      ? ask(Sql.take, [text(refundKey), text(worker), double(leaseMs)], ClaimedRow)
      : ask(Sql.insert, [
        text(refundKey), text(chargeKey), text(request.refundId), text(charge.billing_period), text(charge.currency), BigInt(decision.amountMinor),
        text(request.reason), text(request.actor), text(request.note), text(payment.paymentIntentId), text(payment.chargeId),
        text(worker), double(leaseMs)
      ], ClaimedRow)
    const [row] = rows
    return row === undefined ? yield* Effect.die(new Error("Bug: a refund under our lock was not taken")) : { _tag: "Claimed", refund: claimedRefundOf(row, worker) }
  })

  const settleOnce = Effect.fnUntraced(function*({ lease, outcome, pollAfterMs }: RefundSettleInput): Effect.fn.Return<RefundSettleAnswer, StoreFailure> {
    const [row] = yield* ask(Sql.lockRefund, [text(lease.refundKey)], LockedRefund)
    if (row === undefined) return { _tag: "LeaseLost" }
    const evidence = "processorRefundId" in outcome ? outcome.processorRefundId : null
    const other = row.processor_refund_id !== null && evidence !== null && row.processor_refund_id !== evidence
    if (other || !mayRecordRefund(row.state, outcome._tag, row.lease_epoch === BigInt(lease.epoch))) {
      const recorded = refundOutcomeOf(row)
      return recorded === null ? { _tag: "LeaseLost" } : { _tag: "Recorded", outcome: recorded }
    }
    const to = refundStateOf[outcome._tag]
    const moves = row.state !== to
    yield* sql.unsafe(Sql.record, [
      text(lease.refundKey), text(lease.worker), text(to), text(evidence), text("code" in outcome ? outcome.code : null),
      text("detail" in outcome ? outcome.detail : null), double(pollAfterMs ?? 0), moves
    ])
    return moves ? { _tag: "Settled", outcome } : { _tag: "Recorded", outcome: asAlreadyRefundSettled(outcome) }
  })

  const revisedBy = (chargeKey: ChargeKey) =>
    Effect.map(ask(Sql.successor, [text(chargeKey)], Successor), ([row]) => row?.charge_key)

  const rebillOnce = Effect.fnUntraced(function*(input: RebillInput): Effect.fn.Return<RebillAnswer, StoreFailure> {
    let key = input.chargeKey
    let row: typeof RecordRow.Type | undefined
    for (;;) {
      row = (yield* ask(Sql.lockRevision, [text(key)], RecordRow))[0]
      // Looked for under the lock: another may have opened the next revision while we waited for it.
      const next = yield* revisedBy(key)
      if (next === undefined) break
      key = next
    }
    const last = row === undefined ? undefined : yield* recordOf(row)
    const paid = last?.outcome?._tag === "Succeeded" ? last.outcome : undefined
    const payment = { paymentIntentId: paid?.paymentIntentId ?? null, chargeId: paid?.chargeId ?? null }
    const [gone] = yield* ask(Sql.refunded, [text(key), text(payment.paymentIntentId)], GoneRow)
    const others = yield* elsewhere(key, payment)
    const receivedMinor = Number(row?.received_minor ?? 0n)
    const refundedMinor = gone?.nothing_left === true ? receivedMinor : Number(gone?.refunded_minor ?? 0n) + others.succeededMinor
    const decision = decideRebill(last === undefined ? undefined : { ...last, receivedMinor, refundedMinor }, input)
    if (decision._tag !== "Open") return decision
    const { request, revises } = decision
    yield* sql.unsafe(Sql.openRevision, [
      text(request.chargeKey), text(request.namespace), text(request.customerId), text(request.billingPeriod), text(request.item ?? null),
      BigInt(request.amountMinor), text(request.currency), text(request.stripeCustomerId), text(request.paymentMethod ?? null),
      request.allowFuture === true, integer(request.revision ?? 0), text(revises), text(input.actor), text(input.reason)
    ])
    return { _tag: "Opened", request, revises }
  })

  return RefundLedger.of({
    rebill: (input) => named("bill anew", input.chargeKey, sql.withTransaction(rebillOnce(input))),
    revisedBy: (chargeKey) => named("find revision", chargeKey, revisedBy(chargeKey)),
    claim: (request, worker) => named("claim refund", request.chargeKey, sql.withTransaction(claimOnce(request, worker))),
    settle: (input) => named("settle refund", input.outcome.chargeKey, sql.withTransaction(settleOnce(input))),
    extend: (lease) =>
      named("extend refund", null, Effect.map(
        sql.unsafe(Sql.extend, [text(lease.refundKey), BigInt(lease.epoch), double(leaseMs)]),
        (rows) => rows.length === 1
      )),
    handBack: (lease, retryAfterMs, detail) =>
      named("hand refund back", null, Effect.asVoid(sql.unsafe(Sql.handBack, [
        text(lease.refundKey), text(lease.worker), BigInt(lease.epoch), double(retryAfterMs), text(detail)
      ]))),
    takeExpired: (worker, limit) =>
      named("take expired refunds", null, Effect.map(
        ask(Sql.takeExpired, [text(worker), integer(limit), double(leaseMs)], ClaimedRow),
        (rows) => rows.map((row) => claimedRefundOf(row, worker))
      )),
    find: (refundKey) =>
      named("find refund", null, Effect.map(
        ask(Sql.find, [text(refundKey)], RefundRow),
        ([row]) => row === undefined ? undefined : refundRecordOf(row)
      )),
    list: (chargeKey) => named("list refunds", chargeKey, Effect.map(ask(Sql.list, [text(chargeKey)], RefundRow), (rows) => rows.map(refundRecordOf))),
    events: (refundKey) => named("refund events", null, Effect.map(ask(Sql.events, [text(refundKey)], RefundEventRow), (rows) => rows.map(refundEventOf))),
    report: (billingPeriod) =>
      named("report refunds", null, Effect.map(ask(Sql.report, [text(billingPeriod ?? null)], RefundTotalRow), (rows) => rows.map(refundTotalOf))),
    reportElsewhere: (billingPeriod) =>
      named("report refunds", null, Effect.map(ask(Sql.reportElsewhere, [text(billingPeriod ?? null)], RefundElsewhereRow), (rows) => rows.map(refundElsewhereOf)))
  })
})

/** The book's layers. */
export const PgRefundLedger: {
  /** Leases last `PURSER_LEASE` (15 seconds). The tables are those of `Migrations`; it reads the charges of `PgLedger`. */
  readonly layer: Layer.Layer<RefundLedger, Config.ConfigError, SqlClient.SqlClient>
  /** With options instead of the environment. */
  readonly layerWith: (options: PgRefundLedgerOptions) => Layer.Layer<RefundLedger, never, SqlClient.SqlClient>
} = {
  layer: Layer.effect(RefundLedger, Effect.flatMap(leaseConfig, (lease) => make({ lease }))),
  layerWith: (options) => Layer.effect(RefundLedger, make(options))
}
