/**
 * What a dunning case does next, from what it sees. It remembers nothing: whoever moved the charge meanwhile, and however
 * often it is asked, the answer is that of the present state.
 */
import type { ChargeRecord, DunningEnd, DunningView, OfferedMethod } from "@purser/core"
import { Schema } from "effect"

/** The next step. `Ask` makes the attempt after `attempt`; `GoOn` goes on with one that is under way and that nobody holds. */
export const DunningStep = Schema.Union([
  Schema.TaggedStruct("Wait", { forMs: Schema.Finite }),
  Schema.TaggedStruct("Ask", { attempt: Schema.Int, paymentMethod: Schema.NullOr(Schema.String), actor: Schema.String, reason: Schema.String }),
  Schema.TaggedStruct("GoOn", {}),
  Schema.TaggedStruct("GiveUp", {}),
  Schema.TaggedStruct("End", { end: Schema.Literals(["paid", "new_method", "left"]), reason: Schema.String }),
  /** The case was ended by others, or is unknown. */
  Schema.TaggedStruct("Over", {})
])
export type DunningStep = typeof DunningStep.Type

/** How patient a case is. */
export interface DunningPatience {
  /** After the last attempt, how long a new method is waited for. */
  readonly graceMs: number
  /** How often a payment that settles later is looked at, beside being told. */
  readonly pollMs: number
}

/** Stores and engines have clocks of their own: a wait is never so short that the two could disagree about it for long. */
const waitMinMs = 1000
const wait = (forMs: number): DunningStep => ({ _tag: "Wait", forMs: Math.max(waitMinMs, Math.ceil(forMs)) })
const end = (how: Exclude<DunningEnd, "canceled" | "given_up">, reason: string): DunningStep => ({ _tag: "End", end: how, reason })

/** The method that is still to be tried at once. The customer's default one is none for a charge for which a person has chosen another since. */
const offerOf = ({ offered, record: { chosenMethod } }: DunningView) =>
  offered?.paymentMethod === null && chosenMethod !== null ? null : offered

/** Whether an attempt since the offer was made with it: a person may have asked with the old card meanwhile. */
const isTried = ({ attempt: before, paymentMethod }: OfferedMethod, { attempt, chosenMethod, request }: ChargeRecord) =>
  attempt > before && (paymentMethod === null || paymentMethod === (chosenMethod ?? request.paymentMethod))

const unpaid = (view: DunningView, patience: DunningPatience): DunningStep => {
  const { dueInMs, record, settledForMs } = view
  const offered = offerOf(view)
  const { attempt } = record
  if (offered !== null) {
    return isTried(offered, record)
      ? end("new_method", `${offered.paymentMethod ?? "the new default method"} was refused too`)
      : { _tag: "Ask", attempt, paymentMethod: offered.paymentMethod, actor: offered.actor, reason: offered.reason }
  }
  if (dueInMs !== null) {
    return dueInMs > 0 ? wait(dueInMs) : { _tag: "Ask", attempt, paymentMethod: null, actor: "dunning", reason: `${view.case.caseId}: due by policy` }
  }
  const leftMs = patience.graceMs - settledForMs
  return leftMs > 0 ? wait(leftMs) : { _tag: "GiveUp" }
}

/** The next step of a case. */
export const dunningStep = (view: DunningView | undefined, patience: DunningPatience): DunningStep => {
  if (view === undefined || view.case.state !== "open") return { _tag: "Over" }
  const { record } = view
  if (record.quarantine !== null) return end("left", `quarantined: ${record.quarantine}`)
  switch (record.state) {
    case "succeeded":
      return end("paid", `attempt ${record.attempt} was paid`)
    case "rejected":
    case "canceled":
      return end("left", `the charge is ${record.state}`)
    case "processing":
      return wait(patience.pollMs)
    case "planned":
    case "claimed":
    case "attached":
      return { _tag: "GoOn" }
    case "declined":
    case "requires_action":
      return unpaid(view, patience)
  }
}
