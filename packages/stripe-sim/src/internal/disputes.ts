/**
 * `/v1/disputes`: list, retrieve, update, close; and how a dispute opens and ends.
 *
 * A dispute takes the money of its charge away until it is won; an inquiry takes nothing. Refuses evidence files: a
 * text of evidence, or none, is all that is kept.
 */
import type Stripe from "stripe"
import type { Account } from "./Account.ts"
import { type Answer, fail, missing, ok } from "./answer.ts"
import { page } from "./lists.ts"
import { hashOf, mergeMetadata, type Params, type Rule, text } from "./params.ts"
import type { ChargeRecord, DisputeRecord } from "./records.ts"
import { dispute as shape } from "./renderDispute.ts"
import type { Route } from "./route.ts"

const updateRules = {
  evidence: "hash",
  expand: "unsimulated",
  intended_submission_method: "unsimulated",
  metadata: "metadata",
  submit: "bool"
} as const satisfies Record<keyof Stripe.DisputeUpdateParams, Rule>

const listRules = {
  charge: "string",
  created: "range",
  ending_before: "string",
  expand: "unsimulated",
  limit: "int",
  payment_intent: "string",
  starting_after: "string"
} as const satisfies Record<keyof Stripe.DisputeListParams, Rule>

const daySeconds = 24 * 60 * 60

/** Keeps a new state of a dispute and tells of it. */
const become = (account: Account, dispute: DisputeRecord, ...types: ReadonlyArray<DisputeEvent>): DisputeRecord => {
  account.disputes.put(dispute)
  for (const type of types) account.emit(`charge.dispute.${type}`, () => shape(dispute))
  return dispute
}

type DisputeEvent = "created" | "updated" | "closed" | "funds_withdrawn" | "funds_reinstated"

/** True while money is away because of this dispute. */
export const takesMoney = (dispute: DisputeRecord): boolean => !dispute.inquiry && dispute.status !== "won"

/** Opens a dispute about a charge that succeeded; undefined when there is one already or nothing to dispute. */
export const openDispute = (
  account: Account,
  charge: ChargeRecord,
  options: { readonly reason: string; readonly inquiry: boolean }
): DisputeRecord | undefined => {
  const amountMinor = charge.amountMinor - charge.refundedMinor
  if (charge.status !== "succeeded" || charge.dispute !== null || amountMinor === 0) return undefined
  const dispute: DisputeRecord = {
    id: account.nextId("du_1"),
    seq: account.disputes.nextSeq,
    createdS: account.nowS,
    status: options.inquiry ? "warning_needs_response" : "needs_response",
    inquiry: options.inquiry,
    reason: options.reason,
    amountMinor,
    currency: charge.currency,
    charge: charge.id,
    intent: charge.intent,
    evidence: null,
    submissions: 0,
    dueS: account.nowS + 14 * daySeconds,
    metadata: {}
  }
  account.charges.put({ ...charge, dispute: dispute.id })
  return become(account, dispute, "created", ...(options.inquiry ? [] : ["funds_withdrawn" as const]))
}

/** What a charge brings with it once it has succeeded: some test cards dispute it at once. */
export const afterSuccess = (account: Account, chargeId: string): void => {
  const charge = account.charges.get(chargeId)
  if (charge?.method.behaviour.dispute !== undefined) openDispute(account, charge, charge.method.behaviour.dispute)
}

const open: ReadonlyArray<DisputeRecord["status"]> = [
  "needs_response",
  "under_review",
  "warning_needs_response",
  "warning_under_review"
]

/** Ends a dispute; undefined when it is not there or has ended. An inquiry ends as closed, whatever the outcome. */
export const closeDispute = (account: Account, id: string, outcome: "won" | "lost"): DisputeRecord | undefined => {
  const dispute = account.disputes.get(id)
  if (dispute === undefined || !open.includes(dispute.status)) return undefined
  const status = dispute.inquiry ? "warning_closed" : outcome
  return become(account, { ...dispute, status }, "closed", ...(status === "won" ? ["funds_reinstated" as const] : []))
}

const found = (account: Account, id: string, act: (dispute: DisputeRecord) => Answer): Answer => {
  const dispute = account.disputes.get(id)
  return dispute === undefined ? missing("dispute", id, "id", true) : act(dispute)
}

const shown = (dispute: DisputeRecord): Answer => ok(() => shape(dispute))

const ended = (dispute: DisputeRecord): Answer =>
  fail({
    status: 400,
    saved: true,
    type: "invalid_request_error",
    message: `This dispute is already closed (${dispute.status}).`
  })

const retrieve = (account: Account, _params: Params, id: string): Answer => found(account, id, shown)

const update = (account: Account, params: Params, id: string): Answer =>
  found(account, id, (dispute) => {
    const evidence = hashOf(params, "evidence")
    if (evidence !== undefined && !open.includes(dispute.status)) return ended(dispute)
    const submits = evidence !== undefined && text(params, "submit") !== "false"
    return shown(become(account, {
      ...dispute,
      metadata: mergeMetadata(dispute.metadata, params),
      evidence: evidence === undefined ? dispute.evidence : text(evidence, "uncategorized_text") ?? dispute.evidence ?? "",
      submissions: dispute.submissions + (submits ? 1 : 0),
      status: submits ? (dispute.inquiry ? "warning_under_review" : "under_review") : dispute.status
    }, "updated"))
  })

const close = (account: Account, _params: Params, id: string): Answer =>
  found(account, id, (dispute) => {
    const closed = closeDispute(account, id, "lost")
    return closed === undefined ? ended(dispute) : shown(closed)
  })

const list = (account: Account, params: Params): Answer => {
  const intent = text(params, "payment_intent")
  return page(account.disputes, params, {
    url: "/v1/disputes",
    what: "dispute",
    group: text(params, "charge"),
    show: shape,
    where: (dispute) => intent === undefined || dispute.intent === intent
  })
}

/** The charge that an id means: a charge's own, or the one that paid a PaymentIntent. */
export const chargeNamed = (account: Account, id: string): ChargeRecord | undefined =>
  account.charges.get(id) ?? account.charges.get(account.intents.get(id)?.latestCharge ?? "")

/** Opens a dispute about what an id means. */
export const disputeNamed = (
  account: Account,
  id: string,
  options: { readonly reason?: string | undefined; readonly inquiry?: boolean | undefined }
): DisputeRecord | undefined => {
  const charge = chargeNamed(account, id)
  return charge === undefined
    ? undefined
    : openDispute(account, charge, { reason: options.reason ?? "fraudulent", inquiry: options.inquiry ?? false })
}

/** True when the charge's dispute does not stand in the way of a refund. */
export const refundable = (account: Account, charge: ChargeRecord): boolean => {
  const dispute = account.disputes.get(charge.dispute ?? "")
  return dispute === undefined || !takesMoney(dispute)
}

/** The endpoints of this resource. */
export const routes: ReadonlyArray<Route> = [
  { method: "GET", path: "disputes", rules: listRules, handler: list },
  { method: "GET", path: "disputes/:id", rules: { expand: "unsimulated" }, handler: retrieve },
  { method: "POST", path: "disputes/:id", rules: updateRules, handler: update },
  { method: "POST", path: "disputes/:id/close", rules: { expand: "unsimulated" }, handler: close }
]
