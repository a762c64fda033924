/**
 * `/v1/refunds`: create (by charge or PaymentIntent, whole or in part), retrieve, update, list, cancel.
 *
 * The only place where money goes back. Refuses to give back more than is left on the charge, and anything on a
 * charge that is disputed.
 */
import type Stripe from "stripe"
import type { Account } from "./Account.ts"
import { format } from "./amounts.ts"
import { type Answer, fail, invalid, missing, ok, refuse } from "./answer.ts"
import { refundable } from "./disputes.ts"
import { page } from "./lists.ts"
import { integer, mergeMetadata, type Params, type Rule, text } from "./params.ts"
import type { ChargeRecord, RefundRecord } from "./records.ts"
import * as render from "./render.ts"
import type { Route } from "./route.ts"

const createRules = {
  amount: "int",
  charge: "string",
  currency: "unsimulated",
  customer: "unsimulated",
  expand: "unsimulated",
  instructions_email: "string",
  metadata: "metadata",
  origin: "unsimulated",
  payment_intent: "string",
  reason: ["duplicate", "fraudulent", "requested_by_customer"],
  refund_application_fee: "unsimulated",
  reverse_transfer: "unsimulated"
} as const satisfies Record<keyof Stripe.RefundCreateParams, Rule>

const listRules = {
  charge: "string",
  created: "range",
  ending_before: "string",
  expand: "unsimulated",
  limit: "int",
  payment_intent: "string",
  starting_after: "string"
} as const satisfies Record<keyof Stripe.RefundListParams, Rule>

const settlesLaterMs = 60 * 60 * 1000

/** A refund as Stripe shows it. */
export const shape = (account: Account, refund: RefundRecord): Stripe.Refund => {
  const charge = account.charges.get(refund.charge)
  return render.refund(refund, charge?.method.id ?? null, charge?.customer ?? null)
}

/** The refunds of a charge, newest first, as the charge shows them when it is expanded. */
export const ofCharge = (account: Account, charge: ChargeRecord): Stripe.ApiList<Stripe.Refund> => ({
  object: "list",
  data: Array.from(account.refunds.newestFirst(charge.id), (refund) => shape(account, refund)),
  has_more: false,
  url: `/v1/charges/${charge.id}/refunds`
})

const plain = (message: string, param?: string): Answer =>
  fail({ status: 400, saved: true, type: "invalid_request_error", message, param })

/** The charge that the parameters name, or why there is none to refund. */
const named = (account: Account, params: Params): ChargeRecord | Answer => {
  const chargeId = text(params, "charge")
  const intentId = text(params, "payment_intent")
  if (chargeId !== undefined && intentId !== undefined) {
    return invalid("You may only specify one of these parameters: charge, payment_intent.", "charge", "parameters_exclusive")
  }
  if (chargeId !== undefined) return account.charges.get(chargeId) ?? missing("charge", chargeId, "charge", false)
  if (intentId === undefined) {
    return invalid("One of the following params should be provided for this request: payment_intent or charge.", undefined, "parameter_missing")
  }
  const intent = account.intents.get(intentId)
  if (intent === undefined) return missing("payment_intent", intentId, "payment_intent", false)
  const charge = intent.status === "succeeded" ? account.charges.get(intent.latestCharge ?? "") : undefined
  return charge ?? plain(`This PaymentIntent (${intentId}) does not have a successful charge to refund.`, "payment_intent")
}

const refusal = (account: Account, charge: ChargeRecord, amountMinor: number): Answer | undefined => {
  if (charge.status !== "succeeded") {
    return refuse(`Charge ${charge.id} did not succeed, so there is nothing to refund.`, "charge_not_refundable", "charge")
  }
  if (!refundable(account, charge)) {
    return refuse(`Charge ${charge.id} has been charged back; cannot issue a refund.`, "charge_disputed", "charge")
  }
  const leftMinor = charge.amountMinor - charge.refundedMinor
  if (leftMinor === 0) return refuse(`Charge ${charge.id} has already been refunded.`, "charge_already_refunded", "charge")
  if (amountMinor > leftMinor) {
    return plain(
      `Refund amount (${format(amountMinor, charge.currency)}) is greater than unrefunded amount on charge (${format(leftMinor, charge.currency)})`,
      "amount"
    )
  }
  return undefined
}

/** Puts a new state of a refund and tells of it. */
const become = (account: Account, refund: RefundRecord, type: "refund.updated" | "refund.failed"): RefundRecord => {
  account.refunds.put(refund)
  account.emit(type, () => shape(account, refund))
  account.emit("charge.refund.updated", () => shape(account, refund))
  return refund
}

/** Ends a refund that gives nothing back after all: the charge is as if it had never been. */
const giveUp = (account: Account, refund: RefundRecord, status: "failed" | "canceled"): RefundRecord => {
  const charge = account.charges.get(refund.charge)
  if (charge !== undefined) {
    account.charges.put({ ...charge, refundedMinor: charge.refundedMinor - refund.amountMinor })
  }
  const failureReason = status === "failed" ? "expired_or_canceled_card" : null
  return become(account, { ...refund, status, failureReason }, status === "failed" ? "refund.failed" : "refund.updated")
}

/** Ends a `pending` refund, or makes a `succeeded` one fail as banks do; undefined when its state allows neither. */
export const settleRefund = (account: Account, id: string, outcome: "succeeded" | "failed"): RefundRecord | undefined => {
  const refund = account.refunds.get(id)
  if (refund === undefined) return undefined
  if (outcome === "failed" && (refund.status === "pending" || refund.status === "succeeded")) {
    return giveUp(account, refund, "failed")
  }
  return refund.status === "pending" ? become(account, { ...refund, status: "succeeded" }, "refund.updated") : undefined
}

const create = (account: Account, params: Params): Answer => {
  const given = integer(params, "amount")
  if (given !== undefined && given < 1) {
    return invalid("This value must be greater than or equal to 1.", "amount", "parameter_invalid_integer")
  }
  const charge = named(account, params)
  if (!("refundedMinor" in charge)) return charge
  const amountMinor = given ?? charge.amountMinor - charge.refundedMinor
  const refused = refusal(account, charge, amountMinor)
  if (refused !== undefined) return refused
  const course = charge.method.behaviour.refund ?? "succeeds"
  const refund: RefundRecord = account.refunds.put({
    id: account.nextId(charge.intent === null ? "re_1" : "re_3"),
    seq: account.refunds.nextSeq,
    createdS: account.nowS,
    status: course === "waits" ? "pending" : "succeeded",
    amountMinor,
    currency: charge.currency,
    charge: charge.id,
    intent: charge.intent,
    reason: text(params, "reason") ?? null,
    metadata: mergeMetadata({}, params),
    failureReason: null
  })
  const refunded = account.charges.put({ ...charge, refundedMinor: charge.refundedMinor + amountMinor })
  account.emit("refund.created", () => shape(account, refund))
  account.emit("charge.refunded", () => render.charge(refunded))
  if (course !== "succeeds") {
    account.later(settlesLaterMs, () => settleRefund(account, refund.id, course === "waits" ? "succeeded" : "failed"))
  }
  return shown(account, refund)
}

const shown = (account: Account, refund: RefundRecord): Answer => ok(() => shape(account, refund))

const found = (account: Account, id: string, act: (refund: RefundRecord) => Answer): Answer => {
  const refund = account.refunds.get(id)
  return refund === undefined ? missing("refund", id, "id", true) : act(refund)
}

const retrieve = (account: Account, _params: Params, id: string): Answer => found(account, id, (refund) => shown(account, refund))

const update = (account: Account, params: Params, id: string): Answer =>
  found(account, id, (refund) =>
    shown(account, become(account, { ...refund, metadata: mergeMetadata(refund.metadata, params) }, "refund.updated")))

const cancel = (account: Account, _params: Params, id: string): Answer =>
  found(account, id, (refund) =>
    refund.status === "pending"
      ? shown(account, giveUp(account, refund, "canceled"))
      : plain(`Refund ${id} has a status of ${refund.status} and cannot be canceled.`))

const list = (account: Account, params: Params): Answer => {
  const intentId = text(params, "payment_intent")
  const chargeId = text(params, "charge")
  const ofIntent = intentId === undefined ? undefined : account.intents.get(intentId)?.latestCharge ?? ""
  return page(account.refunds, params, {
    url: "/v1/refunds",
    what: "refund",
    group: chargeId ?? ofIntent,
    show: (refund) => shape(account, refund),
    where: (refund) => intentId === undefined || refund.intent === intentId
  })
}

/** The endpoints of this resource. */
export const routes: ReadonlyArray<Route> = [
  { method: "POST", path: "refunds", rules: createRules, handler: create },
  { method: "GET", path: "refunds", rules: listRules, handler: list },
  { method: "GET", path: "refunds/:id", rules: { expand: "unsimulated" }, handler: retrieve },
  { method: "POST", path: "refunds/:id", rules: { expand: "unsimulated", metadata: "metadata" }, handler: update },
  { method: "POST", path: "refunds/:id/cancel", rules: { expand: "unsimulated" }, handler: cancel }
]
