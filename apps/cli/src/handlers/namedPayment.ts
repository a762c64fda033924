/**
 * A payment that somebody names, as one that may be given back for a charge: read at the processor, and taken only when
 * its metadata, or those of its invoice, are that charge's.
 */
import { accountIdentity, AmountMinor, type ChargeRecord, type NamedPayment, ProcessorAccount } from "@purser/core"
import { Effect, Schema } from "effect"
import { refused } from "../CommandFailed.ts"

const isAmount = Schema.is(AmountMinor)

/** The payment behind `pi_…` or `ch_…`; `undefined` when it is the row's own, which needs no name. */
export const namedPayment = Effect.fnUntraced(function*(record: ChargeRecord, id: string) {
  const processor = yield* ProcessorAccount
  const account = processor.at(processor.accountOf(record.request.namespace))
  if (!/^(pi|ch|py)_/.test(id)) return yield* refused(`--payment ${id}: name a PaymentIntent (pi_…) or a charge (ch_…)`)
  const charge = id.startsWith("pi_") ? undefined : yield* account.charge(id)
  const intentId = id.startsWith("pi_") ? id : charge?.paymentIntentId ?? null
  const intent = intentId === null ? undefined : yield* account.payment(intentId)
  if (charge === undefined && intent === undefined) return yield* refused(`--payment ${id}: it does not exist at Stripe`)
  const invoice = intentId !== null && intent?.identity === null ? yield* account.invoiceOf(intentId) : undefined
  const identity = intent?.identity ?? invoice?.identity ?? accountIdentity(charge?.metadata)
  if (identity?.chargeKey !== record.chargeKey) {
    return yield* refused(`--payment ${id}: its metadata name ${identity?.chargeKey ?? "no charge of Purser"}, not this charge`)
  }
  const paid = record.outcome?._tag === "Succeeded" ? record.outcome : undefined
  const ids = [id, intentId, intent?.chargeId, invoice?.id, charge?.id]
  if (paid !== undefined && ids.some((one) => one !== null && one !== undefined && (one === paid.paymentIntentId || one === paid.chargeId))) return undefined
  const receivedMinor = intent?.amountReceivedMinor ?? (charge?.status === "succeeded" ? charge.amountMinor : 0)
  const currency = intent?.currency ?? charge?.currency
  if (!isAmount(receivedMinor)) return yield* refused(`--payment ${id}: it is not paid`)
  if (currency !== record.request.currency) return yield* refused(`--payment ${id}: it is in ${currency}, the charge in ${record.request.currency}`)
  const payment: NamedPayment = { paymentIntentId: intentId ?? id, chargeId: intent?.chargeId ?? charge?.id ?? null, receivedMinor }
  return payment
})
