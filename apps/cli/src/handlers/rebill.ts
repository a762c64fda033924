/** `purser rebill`: opens the next revision of an identity whose payment went back, and charges it. */
import { type ChargeIdentity, chargeKeyOf, Ledger, Money, RefundLedger } from "@purser/core"
import { ChargePipeline } from "@purser/engine"
import { Stores } from "@purser/purser"
import { StripeGateway } from "@purser/stripe"
import { Effect, Layer, Result } from "effect"
import { CommandFailed, exitStatus, refused } from "../CommandFailed.ts"
import { note, out } from "../ui/Output.ts"
import { waitIfPaused } from "./pause.ts"

/** What the command line says. */
export interface RebillOptions {
  readonly amount: string
  readonly stripeCustomer: string | undefined
  readonly paymentMethod: string | undefined
  readonly unrefunded: boolean
  readonly reason: string
  readonly actor: string
  readonly json: boolean
}

/** Opens the revision, or goes on with the one that was opened with the same terms, and charges it. */
export const rebill = (identity: ChargeIdentity, options: RebillOptions) =>
  Effect.gen(function*() {
    yield* waitIfPaused("Charging is paused, and nothing was billed.")
    const ledger = yield* Ledger
    const chargeKey = chargeKeyOf(identity)
    const first = yield* ledger.find(chargeKey)
    if (first === undefined) return yield* refused("the ledger holds no such charge")
    const { currency } = first.request
    const amount = Money.fromDecimal(options.amount, currency)
    if (Result.isFailure(amount)) return yield* refused(`--amount: ${amount.failure.message}`)
    const money = (minor: number) => `${Money.formatMinor(minor, currency)} ${currency}`
    const answer = yield* (yield* RefundLedger).rebill({
      chargeKey,
      amountMinor: amount.success.amountMinor,
      actor: options.actor,
      reason: options.reason,
      unrefunded: options.unrefunded,
      ...(options.stripeCustomer === undefined ? {} : { stripeCustomerId: options.stripeCustomer }),
      ...(options.paymentMethod === undefined ? {} : { paymentMethod: options.paymentMethod })
    })
    switch (answer._tag) {
      case "NotPaid":
        return yield* refused(`the charge is ${answer.state ?? "not in the ledger"}: only a paid one that was given back is billed anew`)
      case "NotRefunded":
        return yield* refused(
          `${money(answer.refundedMinor)} of ${money(answer.receivedMinor)} were given back: refund the rest first (purser refund), or decide otherwise (--unrefunded)`
        )
      case "Conflict":
        return yield* refused(
          `it was billed anew with ${money(answer.expected.amountMinor)}, which is not settled yet; this says ${money(answer.actual.amountMinor)}`
        )
    }
    const { request, revises } = answer
    yield* note(`revision ${request.revision} ${answer._tag === "Opened" ? "opened" : "is open already"}: ${request.chargeKey}, after ${revises}`)
    const outcome = yield* (yield* ChargePipeline).charge(request)
    yield* out(options.json
      ? JSON.stringify({ ...outcome, revision: request.revision, revises })
      : `revision ${request.revision}: ${"detail" in outcome ? `${outcome._tag}: ${outcome.detail}` : outcome._tag}`)
    if (outcome._tag !== "Succeeded") {
      const { billingPeriod, customerId, item } = request
      const name = `${JSON.stringify(customerId)} ${billingPeriod}${item === undefined ? "" : ` --item ${JSON.stringify(item)}`} --revision ${request.revision}`
      const cap = outcome._tag === "Rejected" && /cap/i.test(outcome.code) ? `purser cap raise ${billingPeriod} --currency ${request.currency}, then ` : ""
      const next = outcome._tag === "Rejected" || outcome._tag === "Declined" ? `. The revision stays open: ${cap}purser retry ${name}` : ""
      return yield* new CommandFailed({ text: `the charge is not paid${next}`, status: exitStatus.partial })
    }
  }).pipe(
    Effect.scoped,
    Effect.provide(ChargePipeline.layer.pipe(Layer.provide(StripeGateway.layerConfig), Layer.provideMerge(Stores.layerConfig)))
  )
