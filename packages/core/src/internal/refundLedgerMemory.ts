/** The book of refunds over a map and the memory ledger's rows, on Effect's clock; the readable twin of the SQL driver. */
import { Clock, Effect, Option } from "effect"
import type { ChargeKey } from "../ChargeKey.ts"
import { Ledger } from "../Ledger.ts"
import { asAlreadyRefundSettled, type RefundKey, type RefundOutcome } from "../Refund.ts"
import {
  type ClaimedRefund, type RefundElsewhereTotal, type RefundEvent, type RefundClaimAnswer, type RefundLease, type RefundLedger, type RefundRecord,
  type RefundSettleAnswer, type RefundState, type RefundTotal
} from "../RefundLedger.ts"
import { decideRebill, type RebillAnswer } from "../Rebill.ts"
import { memoryRows, plannedRow, snapshotOf } from "./ledgerMemory.ts"
import { decideRefund, mayRecordRefund, type RefundablePayment, refundedElsewhere, refundHoldsMoney, refundStateOf } from "../RefundRules.ts"
import { Sightings } from "../Sightings.ts"

interface Row extends RefundRecord {
  state: RefundState
  attempt: number
  processorRefundId: string | null
  outcome: RefundOutcome | null
  epoch: number
  leaseUntilMs: number
  readonly billingPeriod: string
  readonly chargeId: string | null
  readonly events: Array<RefundEvent>
}

const isOpen = ({ state }: Row) => state === "requested" || state === "pending"

export const makeRefundLedgerMemory = Effect.fnUntraced(function*(options: { readonly leaseMs: number }) {
  const ledger = yield* Ledger
  const clock = yield* Clock.Clock
  const charges = memoryRows.get(ledger)
  if (charges === undefined) return yield* Effect.die(new Error("Bug: RefundLedger.layerMemory works over Ledger.layerMemory only"))
  const now = () => clock.currentTimeMillisUnsafe()
  const rows = new Map<RefundKey, Row>()
  const sightings = yield* Effect.serviceOption(Sightings)
  const movementsOf = (chargeKey: ChargeKey) => Option.isSome(sightings) ? sightings.value.movements(chargeKey) : Effect.succeed([])

  const note = (row: Row, from: RefundState | null, worker: string | null, detail: string | null) => {
    row.events.push({
      refundKey: row.refundKey, sequence: row.events.length + 1, atMs: now(), from, to: row.state, worker, attempt: row.attempt, detail
    })
  }
  const take = (row: Row, worker: string, detail: string | null): ClaimedRefund => {
    row.epoch += 1
    row.leaseUntilMs = now() + options.leaseMs
    if (row.epoch > 1) note(row, row.state, worker, detail)
    return {
      lease: { refundKey: row.refundKey, worker, epoch: row.epoch },
      leaseLeftMs: options.leaseMs,
      chargeKey: row.chargeKey,
      namespace: row.namespace,
      refundId: row.refundId,
      state: row.state as ClaimedRefund["state"],
      amountMinor: row.amountMinor,
      currency: row.currency,
      reason: row.reason,
      paymentIntentId: row.paymentIntentId,
      chargeId: row.chargeId,
      processorRefundId: row.processorRefundId,
      attempt: row.attempt,
      resumed: row.epoch > 1
    }
  }
  const ofCharge = (chargeKey: ChargeKey) => [...rows.values()].filter((row) => row.chargeKey === chargeKey)

  const ofPayment = (chargeKey: ChargeKey, payment: RefundablePayment) =>
    ofCharge(chargeKey).filter(({ paymentIntentId }) => paymentIntentId === payment.paymentIntentId)
  const oursAt = (chargeKey: ChargeKey) => new Set(ofCharge(chargeKey).flatMap(({ processorRefundId }) => processorRefundId ?? []))

  const successor = (chargeKey: ChargeKey) => [...charges.values()].find(({ revises }) => revises === chargeKey)?.chargeKey

  const owned = (lease: RefundLease): Row | undefined => {
    const row = rows.get(lease.refundKey)
    return row !== undefined && row.epoch === lease.epoch && isOpen(row) ? row : undefined
  }

  const service: RefundLedger["Service"] = {
    claim: (request, worker) =>
      Effect.map(movementsOf(request.chargeKey), (movements): RefundClaimAnswer => {
        const charge = charges.get(request.chargeKey)
        const found = rows.get(request.refundKey)
        const paid = charge?.outcome?._tag === "Succeeded" ? charge.outcome : undefined
        const payment = request.payment ?? { paymentIntentId: paid?.paymentIntentId ?? null, chargeId: paid?.chargeId ?? null }
        const decision = decideRefund(
          request,
          charge === undefined ? undefined : {
            state: charge.state,
            receivedMinor: request.payment?.receivedMinor ?? paid?.amountReceivedMinor ?? 0,
            heldMinor: ofPayment(request.chargeKey, payment).filter(({ state }) => refundHoldsMoney(state)).reduce((sum, row) => sum + row.amountMinor, 0),
            elsewhereMinor: refundedElsewhere(movements, payment, oursAt(request.chargeKey)).heldMinor
          },
          found === undefined ? undefined : { ...found, leaseLeftMs: found.leaseUntilMs - now() }
        )
        if (decision._tag === "Answer") return decision.answer
        if (found !== undefined) {
          if (decision._tag === "Again") {
            const from = found.state
            Object.assign(found, { state: "requested", attempt: found.attempt + 1, outcome: null, processorRefundId: null })
            note(found, from, null, `asked again by ${request.actor}: ${request.note}`)
          }
          return { _tag: "Claimed", refund: take(found, worker, "taken over") }
        }
        if (charge === undefined || payment.paymentIntentId === null || decision._tag === "Take") throw new Error("Bug: a refund without a payment")
        const row: Row = {
          refundKey: request.refundKey,
          chargeKey: request.chargeKey,
          namespace: charge.request.namespace,
          refundId: request.refundId,
          state: "requested",
          amountMinor: decision.amountMinor,
          currency: charge.request.currency,
          billingPeriod: charge.request.billingPeriod,
          reason: request.reason,
          actor: request.actor,
          note: request.note,
          attempt: 1,
          processorRefundId: null,
          paymentIntentId: payment.paymentIntentId,
          chargeId: payment.chargeId,
          outcome: null,
          requestedAtMs: now(),
          epoch: 0,
          leaseUntilMs: 0,
          events: []
        }
        rows.set(row.refundKey, row)
        note(row, null, worker, `requested by ${request.actor}: ${request.note}`)
        return { _tag: "Claimed", refund: take(row, worker, null) }
      }),
    settle: ({ lease, outcome, pollAfterMs }) =>
      Effect.sync((): RefundSettleAnswer => {
        const row = rows.get(lease.refundKey)
        if (row === undefined) return { _tag: "LeaseLost" }
        const evidence = "processorRefundId" in outcome ? outcome.processorRefundId : null
        const ours = row.epoch === lease.epoch
        const other = row.processorRefundId !== null && evidence !== null && row.processorRefundId !== evidence
        if (other || !mayRecordRefund(row.state, outcome._tag, ours)) {
          return row.outcome === null ? { _tag: "LeaseLost" } : { _tag: "Recorded", outcome: asAlreadyRefundSettled(row.outcome) }
        }
        const from = row.state
        row.state = refundStateOf[outcome._tag]
        row.outcome = outcome
        row.processorRefundId = evidence ?? row.processorRefundId
        row.leaseUntilMs = row.state === "pending" ? now() + (pollAfterMs ?? 0) : 0
        if (from === "pending" && row.state === "pending") return { _tag: "Recorded", outcome: asAlreadyRefundSettled(outcome) }
        note(row, from, lease.worker, "detail" in outcome ? outcome.detail : evidence)
        return { _tag: "Settled", outcome }
      }),
    extend: (lease) =>
      Effect.sync(() => {
        const row = owned(lease)
        if (row === undefined) return false
        row.leaseUntilMs = now() + options.leaseMs
        return true
      }),
    handBack: (lease, retryAfterMs, detail) =>
      Effect.sync(() => {
        const row = owned(lease)
        if (row === undefined) return
        row.leaseUntilMs = now() + retryAfterMs
        note(row, row.state, lease.worker, detail)
      }),
    takeExpired: (worker, limit) =>
      Effect.sync(() =>
        [...rows.values()].filter((row) => isOpen(row) && row.leaseUntilMs <= now())
          .sort((a, b) => a.leaseUntilMs - b.leaseUntilMs)
          .slice(0, limit)
          .map((row) => take(row, worker, "taken over"))
      ),
    rebill: (input) =>
      Effect.suspend(() => {
        let key = input.chargeKey
        for (let next = successor(key); next !== undefined; next = successor(key)) key = next
        return Effect.map(movementsOf(key), (movements): RebillAnswer => {
          const row = charges.get(key)
          const paid = row?.outcome?._tag === "Succeeded" ? row.outcome : undefined
          const payment = { paymentIntentId: paid?.paymentIntentId ?? null, chargeId: paid?.chargeId ?? null }
          const receivedMinor = paid?.amountReceivedMinor ?? 0
          const gone = ofPayment(key, payment)
          const refundedMinor = gone.some(({ state }) => state === "already_refunded")
            ? receivedMinor
            : gone.filter(({ state }) => state === "succeeded").reduce((sum, { amountMinor }) => sum + amountMinor, 0) +
              refundedElsewhere(movements, payment, oursAt(key)).succeededMinor
          const decision = decideRebill(row === undefined ? undefined : { ...row, receivedMinor, refundedMinor }, input)
          if (decision._tag !== "Open") return decision
          const { request, revises } = decision
          charges.set(request.chargeKey, plannedRow(request, request.chargeKey, now(), revises, `billed anew by ${input.actor}: ${input.reason}`))
          return { _tag: "Opened", request, revises }
        })
      }),
    revisedBy: (chargeKey) => Effect.sync(() => successor(chargeKey)),
    find: (refundKey) =>
      Effect.sync(() => {
        const row = rows.get(refundKey)
        return row === undefined ? undefined : snapshotOf(row)
      }),
    list: (chargeKey) => Effect.sync(() => ofCharge(chargeKey).map(snapshotOf)),
    events: (refundKey) => Effect.sync(() => [...rows.get(refundKey)?.events ?? []]),
    report: (billingPeriod) =>
      Effect.sync(() => {
        const totals = new Map<string, RefundTotal>()
        for (const row of rows.values()) {
          if (billingPeriod !== undefined && row.billingPeriod !== billingPeriod) continue
          const key = JSON.stringify([row.billingPeriod, row.currency, row.state])
          const found = totals.get(key)
          totals.set(key, {
            billingPeriod: row.billingPeriod,
            currency: row.currency,
            state: row.state,
            refunds: (found?.refunds ?? 0) + 1,
            amountMinor: (found?.amountMinor ?? 0n) + BigInt(row.amountMinor)
          })
        }
        return [...totals.values()]
      }),
    reportElsewhere: (billingPeriod) =>
      Effect.gen(function*() {
        const totals = new Map<string, RefundElsewhereTotal>()
        for (const { chargeKey, request } of charges.values()) {
          if (billingPeriod !== undefined && request.billingPeriod !== billingPeriod) continue
          const ours = oursAt(chargeKey)
          for (const { amountMinor, currency, id, kind, status } of yield* movementsOf(chargeKey)) {
            if (kind !== "refund" || status !== "succeeded" || ours.has(id)) continue
            const key = JSON.stringify([request.billingPeriod, currency])
            const found = totals.get(key)
            totals.set(key, {
              billingPeriod: request.billingPeriod,
              currency,
              refunds: (found?.refunds ?? 0) + 1,
              amountMinor: (found?.amountMinor ?? 0n) + BigInt(amountMinor)
            })
          }
        }
        return [...totals.values()]
      })
  }
  return service
})
