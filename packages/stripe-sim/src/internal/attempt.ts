/**
 * One attempt to take the money of a PaymentIntent, and what settles it later.
 *
 * The only place where a PaymentIntent becomes `succeeded`; every way in checks the status first, so an intent
 * succeeds at most once. Refuses to read parameters.
 */
import type Stripe from "stripe"
import { authenticationRequired, type Decline } from "../TestCards.ts"
import type { Account } from "./Account.ts"
import { type Answer, declined, ok } from "./answer.ts"
import { afterSuccess } from "./disputes.ts"
import { follow } from "./invoiceState.ts"
import type { ChargeRecord, IntentRecord, PaymentMethodRecord } from "./records.ts"
import * as render from "./render.ts"

/** How the caller wants the attempt made. */
export interface AttemptOptions {
  readonly offSession: boolean
  readonly errorOnRequiresAction: boolean
  readonly show: (intent: IntentRecord) => Answer
}

const newCharge = (
  account: Account,
  intent: IntentRecord,
  method: PaymentMethodRecord,
  status: ChargeRecord["status"],
  decline: Decline | null
): ChargeRecord =>
  tell(account, account.charges.put({
    id: account.nextId("ch_3"),
    seq: account.charges.nextSeq,
    createdS: account.nowS,
    status,
    amountMinor: intent.amountMinor,
    currency: intent.currency,
    customer: intent.customer,
    intent: intent.id,
    method,
    description: intent.description,
    metadata: intent.metadata,
    decline,
    refundedMinor: 0,
    dispute: null
  }))

/** Puts the new state of an intent and tells of it. */
const become = (account: Account, intent: IntentRecord, type: Stripe.Event.Type): IntentRecord => {
  account.intents.put(intent)
  account.emit(type, () => render.paymentIntent(intent))
  if (intent.invoice !== null) follow(account, intent)
  return intent
}

/** Tells how a charge ended or that it waits. */
const tell = (account: Account, charge: ChargeRecord): ChargeRecord => {
  account.emit(`charge.${charge.status}`, () => render.charge(charge))
  return charge
}

const succeed = (account: Account, intent: IntentRecord, chargeId: string): IntentRecord => {
  account.move(intent.id, intent.amountMinor, intent.currency)
  const succeeded = become(account, {
    ...intent,
    status: "succeeded",
    amountReceivedMinor: intent.amountMinor,
    latestCharge: chargeId,
    failure: null
  }, "payment_intent.succeeded")
  afterSuccess(account, chargeId)
  return succeeded
}

const failWith = (account: Account, intent: IntentRecord, charge: ChargeRecord, decline: Decline): IntentRecord =>
  become(account, {
    ...intent,
    status: "requires_payment_method",
    paymentMethod: null,
    latestCharge: charge.id,
    failure: { decline, chargeId: charge.id, method: charge.method }
  }, "payment_intent.payment_failed")

const refuseCard = (
  account: Account,
  intent: IntentRecord,
  method: PaymentMethodRecord,
  decline: Decline
): Answer => {
  const charge = newCharge(account, intent, method, "failed", decline)
  return declined(decline, charge, method, failWith(account, intent, charge, decline))
}

/** Charges the method for the intent, whose status must allow a confirm. */
export const attempt = (
  account: Account,
  before: IntentRecord,
  method: PaymentMethodRecord,
  options: AttemptOptions
): Answer => {
  const intent: IntentRecord = { ...before, paymentMethod: method.id }
  const { authentication, decline, settlesLater } = method.behaviour
  if (authentication === "always" || (authentication === "on_session" && !options.offSession)) {
    return options.offSession || options.errorOnRequiresAction
      ? refuseCard(account, intent, method, authenticationRequired)
      : options.show(become(account, { ...intent, status: "requires_action", failure: null }, "payment_intent.requires_action"))
  }
  if (settlesLater) {
    const charge = newCharge(account, intent, method, "pending", null)
    if (method.behaviour.settlesByClock === true) {
      account.laterFor(intent.customer, account.settings.bankSettlesMs, () => {
        // Someone else may have ended it, and a new attempt may be on its way.
        const now = account.intents.get(intent.id)
        if (now?.status === "processing" && now.latestCharge === charge.id) settle(account, intent.id, undefined)
      })
    }
    return options.show(
      become(account, { ...intent, status: "processing", latestCharge: charge.id, failure: null }, "payment_intent.processing")
    )
  }
  if (decline !== undefined) return refuseCard(account, intent, method, decline)
  return options.show(succeed(account, intent, newCharge(account, intent, method, "succeeded", null).id))
}

const settlementFailure: Decline = {
  code: "card_declined",
  declineCode: "generic_decline",
  message: "The payment could not be settled."
}

/**
 * Ends what waits outside the API: a `processing` payment settles, a `requires_action` customer authenticates.
 * Without an outcome the method decides. Undefined when the intent waits for neither.
 */
export const settle = (
  account: Account,
  intentId: string,
  outcome: "succeeded" | "failed" | undefined
): IntentRecord | undefined => {
  const intent = account.intents.get(intentId)
  const method = account.paymentMethod(intent?.paymentMethod ?? "")
  if (intent === undefined || method === undefined) return undefined
  if (intent.status !== "processing" && intent.status !== "requires_action") return undefined
  const decline = outcome === "succeeded"
    ? null
    : method.behaviour.decline ?? (outcome === "failed" ? settlementFailure : null)
  const pending = account.charges.get(intent.latestCharge ?? "")
  const status = decline === null ? "succeeded" : "failed"
  const charge = intent.status === "processing" && pending !== undefined
    ? tell(account, account.charges.put({ ...pending, status, decline }))
    : newCharge(account, intent, method, status, decline)
  return decline === null ? succeed(account, intent, charge.id) : failWith(account, intent, charge, decline)
}

/**
 * An answer that shows the intent as it is now. On its own, so that a saved answer holds this record and nothing of
 * the request that made it.
 */
export const shown = (intent: IntentRecord): Answer => ok(() => render.paymentIntent(intent))
