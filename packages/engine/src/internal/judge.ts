/**
 * What one row and the objects that bear its charge key say about each other. It decides nothing about money: it names
 * differences, and what evidence would allow to be done about each.
 */
import type { AccountPayment, ChargeRecord } from "@purser/core"
import { termsApart } from "./evidence.ts"

/** The kinds of differences. */
export type DifferenceKind =
  /** Paid at the processor, and the ledger does not know it: no row, or a row without an object. */
  | "missing_here"
  /** Recorded as paid, and the processor does not know the object. */
  | "missing_there"
  /** Amount, currency or customer differ. */
  | "amount_differs"
  /** Two payments for one identity. */
  | "paid_twice"
  /** The row's own object is in another state than the row. */
  | "state_differs"
  /** Paid by another object than the one that the row names. */
  | "not_attached"
  /** An unpaid object that no row names. */
  | "orphan"

/** What evidence allows. `look`: the row's object was not in the list and has to be read. */
export type Remedy = "none" | "adopt" | "settle" | "cancel" | "look"

/** One difference between a row and its objects. */
export interface Finding {
  readonly kind: DifferenceKind
  readonly objects: ReadonlyArray<AccountPayment>
  readonly detail: string
  readonly remedy: Remedy
}

/** How sure one must be that nobody is making use of an object just now. */
export interface JudgeOptions {
  readonly nowMs: number
  readonly orphanAgeMs: number
}

/** The gateway with one call makes no object beforehand: the row bears a name of its own, and the outcome the charge. */
const ownsByName = (record: ChargeRecord, object: AccountPayment): boolean =>
  record.paymentIntentId?.startsWith("charges:") === true && !object.id.startsWith("pi_") && !object.id.startsWith("in_")

/** Whether the row names this object. */
export const isAttached = (record: ChargeRecord, object: AccountPayment): boolean =>
  object.id === record.paymentIntentId || ownsByName(record, object)

const isUnpaid = ({ status }: Pick<AccountPayment, "status">) => status === "unconfirmed" || status === "declined" || status === "requires_action" || status === "draft"

/** What differs in the terms, in words. */
export const termsProblem = ({ request }: ChargeRecord, object: AccountPayment): string | undefined => {
  const found = termsApart(request, object)
  return found.length === 0 ? undefined : found.join("; ")
}

/** The object that the outcome of a paid row names. */
const paidObjectId = (record: ChargeRecord): string | null =>
  record.outcome?._tag !== "Succeeded" ? null
    : record.paymentIntentId?.startsWith("charges:") === true ? record.outcome.chargeId : record.outcome.paymentIntentId

const judgePaid = (record: ChargeRecord, paid: AccountPayment): Finding | undefined => {
  const terms = termsProblem(record, paid)
  if (terms !== undefined) return { kind: "amount_differs", objects: [paid], detail: `${paid.id}: ${terms}`, remedy: "none" }
  if (record.state === "succeeded") {
    return paidObjectId(record) === paid.id
      ? undefined
      : { kind: "not_attached", objects: [paid], detail: `the row was paid by ${paidObjectId(record) ?? "another object"}`, remedy: "look" }
  }
  if (isAttached(record, paid)) return { kind: "state_differs", objects: [paid], detail: `the row is ${record.state}, ${paid.id} is paid`, remedy: "settle" }
  return record.paymentIntentId === null
    ? { kind: "missing_here", objects: [paid], detail: `the row is ${record.state} and names no object`, remedy: "adopt" }
    : { kind: "not_attached", objects: [paid], detail: `the row names ${record.paymentIntentId}`, remedy: "none" }
}

/** Two states that say the same: a decline may be a wish for the customer, and unpaid is unpaid. */
const agrees = (record: ChargeRecord, { status }: AccountPayment): boolean =>
  record.state === "processing" ? status === "processing" : isUnpaid({ status })

const judgeUnpaid = (record: ChargeRecord, own: AccountPayment | undefined): Finding | undefined => {
  if (record.state === "succeeded") {
    return own === undefined
      ? { kind: "missing_there", objects: [], detail: `${paidObjectId(record) ?? "its object"} is not among the objects listed`, remedy: "look" }
      : { kind: "state_differs", objects: [own], detail: `the row is succeeded, ${own.id} is ${own.status}`, remedy: "none" }
  }
  if (own === undefined || own.status === "other") return undefined
  const waits = record.state === "processing" || record.state === "requires_action"
  return waits && !agrees(record, own)
    ? { kind: "state_differs", objects: [own], detail: `the row is ${record.state}, ${own.id} is ${own.status}`, remedy: "settle" }
    : undefined
}

/** Everything that differs; nothing when all is as it should be. */
export const judge = (record: ChargeRecord, objects: ReadonlyArray<AccountPayment>, options: JudgeOptions): ReadonlyArray<Finding> => {
  const findings: Array<Finding> = []
  const paid = objects.filter(({ status }) => status === "succeeded")
  if (paid.length > 1) {
    findings.push({ kind: "paid_twice", objects: paid, detail: `${paid.length} payments bear this charge key`, remedy: "none" })
    const own = paid.find((object) => isAttached(record, object))
    const late = own === undefined || record.state === "succeeded" ? undefined : judgePaid(record, own)
    if (late !== undefined) findings.push(late)
  } else {
    const own = objects.find((object) => isAttached(record, object))
    const finding = paid[0] === undefined ? judgeUnpaid(record, own) : judgePaid(record, paid[0])
    if (finding !== undefined) findings.push(finding)
  }
  for (const object of objects) {
    if (isAttached(record, object) || object.status === "succeeded" || object.status === "canceled" || object.status === "other") continue
    if (object.status === "processing") {
      findings.push({ kind: "not_attached", objects: [object], detail: `${object.id} is being paid, and the row does not name it`, remedy: "none" })
      continue
    }
    // A row in work may be about to name the object that was made for it.
    const inWork = record.paymentIntentId === null && (record.state === "planned" || record.state === "claimed")
    if (inWork || options.nowMs - object.createdMs < options.orphanAgeMs) continue
    findings.push({ kind: "orphan", objects: [object], detail: `${object.id} is ${object.status}, and no row names it`, remedy: object.id.startsWith("pi_") ? "cancel" : "none" })
  }
  return findings
}
