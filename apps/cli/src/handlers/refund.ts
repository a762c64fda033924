/** `purser refund`: gives one payment back, whole or in part. */
import {
  type ChargeIdentity, type ChargeRecord, chargeKeyOf, type Currency, Ledger, Money, namedRefundId, type RefundError, refundKeyOf, RefundLedger, type RefundOutcome,
  type RefundReason, RefundRequest, Sightings
} from "@purser/core"
import { ChargePipeline, Refunds } from "@purser/engine"
import { Stores } from "@purser/purser"
import { StripeAccount, StripeGateway, StripeRefunds } from "@purser/stripe"
import { Effect, Layer, Result } from "effect"
import { CommandFailed, exitStatus, refused } from "../CommandFailed.ts"
import { waitIfPaused } from "./pause.ts"
import { givenBack } from "../ui/givenBack.ts"
import { note, out } from "../ui/Output.ts"
import { namedPayment } from "./namedPayment.ts"

/** What the command line says. */
export interface RefundOptions {
  readonly amount: string | undefined
  readonly refundId: string
  /** Another payment of the same identity than the one that the row names. */
  readonly payment: string | undefined
  readonly cause: RefundReason | null
  readonly reason: string
  readonly actor: string
  readonly again: boolean
  readonly dryRun: boolean
  readonly json: boolean
}

const readAmount = Effect.fnUntraced(function*(amount: string | undefined, currency: Currency) {
  if (amount === undefined) return null
  const money = Money.fromDecimal(amount, currency, { minimumMinor: 1 })
  return Result.isFailure(money) ? yield* refused(`--amount: ${money.failure.message}`) : money.success.amountMinor
})

const refusalText = (error: RefundError, record: ChargeRecord): string => {
  const money = (minor: number) => `${Money.formatMinor(BigInt(minor), record.request.currency)} ${record.request.currency}`
  const { reason } = error
  switch (reason._tag) {
    case "RefundTooLarge":
      return `${
        reason.leftMinor <= 0
          ? `nothing is left to refund of ${money(reason.receivedMinor)}`
          : `${money(reason.requestedMinor)} is more than is left to refund: ${money(reason.leftMinor)} of ${money(reason.receivedMinor)}`
      }${reason.elsewhereMinor === 0 ? "" : `; ${money(reason.elsewhereMinor)} were given back elsewhere`}`
    case "RefundConflict":
      return `refund "${reason.refundId}" of this charge is over ${money(reason.expectedMinor)}: another refund needs another --id`
    default:
      return error.message
  }
}

const textOf = (outcome: RefundOutcome, amount: string): string => {
  const before = outcome.alreadySettled ? " (as recorded before)" : ""
  switch (outcome._tag) {
    case "Refunded":
      return `refunded ${amount}: ${outcome.processorRefundId}${before}`
    case "RefundPending":
      return `pending ${amount}: ${outcome.processorRefundId}, ${outcome.detail}${before}`
    case "RefundFailed":
      return `failed: ${outcome.detail}${before}`
    case "AlreadyRefunded":
      return `nothing was left to refund: others have given it back${before}`
    case "RefundRefused":
      return `refused: ${outcome.detail}${before}`
  }
}

/** Says what would go back, and gives it back. */
export const refund = (identity: ChargeIdentity, options: RefundOptions) =>
  Effect.gen(function*() {
    const ledger = yield* Ledger
    const book = yield* RefundLedger
    const chargeKey = chargeKeyOf(identity)
    const record = yield* ledger.find(chargeKey)
    if (record === undefined) return yield* refused("the ledger holds no such charge")
    const { currency } = record.request
    const amountMinor = yield* readAmount(options.amount, currency)
    const money = (minor: number) => `${Money.formatMinor(BigInt(minor), currency)} ${currency}`
    const payment = options.payment === undefined ? undefined : yield* namedPayment(record, options.payment)
    const refundId = payment === undefined ? options.refundId : namedRefundId(payment.paymentIntentId, options.refundId)
    if (options.dryRun) {
      const known = yield* book.find(refundKeyOf(chargeKey, refundId))
      const { elsewhereMinor, leftMinor, receivedMinor } = givenBack(record, yield* book.list(chargeKey), yield* (yield* Sightings).movements(chargeKey), payment)
      const elsewhere = elsewhereMinor === 0 ? "" : `; ${money(elsewhereMinor)} were given back elsewhere`
      if (known !== undefined) return yield* note(`refund "${refundId}" over ${money(known.amountMinor)} is ${known.state}`)
      if (record.state !== "succeeded" && payment === undefined) return yield* refused(`the charge is ${record.state}: only a paid one can be refunded`)
      const wished = amountMinor ?? leftMinor
      if (wished > leftMinor || leftMinor === 0) {
        return yield* refused(`nothing would go back: ${money(leftMinor)} of ${money(receivedMinor)} are left${elsewhere}`)
      }
      return yield* note(`${money(wished)} would go back; ${money(leftMinor)} of ${money(receivedMinor)} are left${elsewhere}`)
    }
    const request = new RefundRequest({
      chargeKey, refundId, ...(payment === undefined ? {} : { payment }), amountMinor, reason: options.cause, actor: options.actor, note: options.reason,
      ...(options.again ? { again: true } : {})
    })
    yield* waitIfPaused("Charging is paused, and nothing was refunded.")
    const outcome = yield* (yield* Refunds).refund(request).pipe(
      Effect.catchTag("RefundError", (error): Effect.Effect<never, CommandFailed | RefundError> =>
        Effect.fail(error.isRetryable ? error : refused(refusalText(error, record))))
    )
    yield* out(options.json ? JSON.stringify({ ...outcome, refundId, currency }) : textOf(outcome, money(outcome.amountMinor)))
    if (outcome._tag !== "Refunded" && outcome._tag !== "AlreadyRefunded") {
      return yield* new CommandFailed({ text: "the refund is not done", status: exitStatus.partial })
    }
  }).pipe(
    Effect.scoped,
    Effect.provide(
      // The pipeline charges nothing here: it asks whether an outage, which holds refunds too, is over.
      Layer.mergeAll(StripeAccount.layerConfig, Refunds.layer.pipe(Layer.provide(StripeRefunds.layer)), ChargePipeline.layer.pipe(Layer.provide(StripeGateway.layerConfig))).pipe(
        Layer.provideMerge(Stores.layerConfig)
      )
    )
  )
