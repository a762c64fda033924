/** What went back of a payment, beside its row: disputes, and refunds that the book of refunds did not make. */
import { type AccountCharge, type AccountReader, type AccountReversal, ChargeKey, type LedgerError, type PipelineError, RefundKey, RefundLedger, Sightings } from "@purser/core"
import { Effect, Option, Schema } from "effect"

const isKey = Schema.is(ChargeKey)
const isRefundKey = Schema.is(RefundKey)

/** Notes one reversal; a refund of our own is left to its book. Answers what was noted. */
export const makeNoteReversal = Effect.gen(function*() {
  const sightings = yield* Sightings
  const refunds = yield* Effect.serviceOption(RefundLedger)

  return Effect.fnUntraced(function*(reversal: AccountReversal, key: string | undefined): Effect.fn.Return<"noted" | "ours" | "foreign", LedgerError> {
    const { amountMinor, chargeId, createdMs, currency, id, kind, metadata, paymentIntentId, reason, status } = reversal
    const refundKey = metadata["refund_key"]
    if (kind === "refund" && Option.isSome(refunds) && refundKey !== undefined && isRefundKey(refundKey)) {
      const record = yield* refunds.value.find(refundKey)
      if (record !== undefined) return "ours"
    }
    if (key === undefined || !isKey(key)) {
      const detail = `a ${kind} of a payment that bears no charge key`
      yield* sightings.list({ id, reason: "foreign", chargeKey: null, amountMinor, currency, stripeCustomerId: null, status, detail })
      return "foreign"
    }
    yield* sightings.note({ id, kind, chargeKey: key, paymentIntentId, chargeId, amountMinor, currency, status, reason, createdMs })
    return "noted"
  })
})

/** Notes all that went back of one charge of ours. */
export const makeNoteReversals = Effect.gen(function*() {
  const note = yield* makeNoteReversal
  return Effect.fnUntraced(function*(account: AccountReader, charge: AccountCharge, key: string | undefined): Effect.fn.Return<void, PipelineError> {
    if (key === undefined) return
    const refunds = charge.amountRefundedMinor > 0 ? yield* account.refundsOf(charge.id) : []
    const disputes = charge.isDisputed ? yield* account.disputesOf(charge.id) : []
    yield* Effect.forEach([...refunds, ...disputes], (reversal) => note(reversal, key), { discard: true })
  })
})
