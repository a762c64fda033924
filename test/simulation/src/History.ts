/**
 * The verdict on one charge that has come to rest: its row and its trail against the processor's books. It is the same for
 * simulated worlds and for real processes, and takes nobody's word but theirs.
 */
import type { ChargeEvent, ChargeRecord, ChargeState } from "@purser/core"

/** The moves that `docs/protocol.md` draws. */
const moves: Record<ChargeState, ReadonlyArray<ChargeState>> = {
  planned: ["claimed"],
  claimed: ["attached", "rejected"],
  attached: ["claimed", "rejected", "succeeded", "declined", "requires_action", "processing"],
  processing: ["succeeded", "declined", "claimed", "canceled", "requires_action"],
  requires_action: ["processing", "succeeded", "attached"],
  declined: ["attached", "planned", "succeeded"],
  rejected: ["planned", "attached", "succeeded"],
  succeeded: [],
  canceled: ["succeeded"]
}

/** A payment that the ledger did not know is taken into a row that names no object. */
const isAdoption = (from: ChargeState, { detail, to }: ChargeEvent) =>
  to === "processing" && detail?.startsWith("paid at the processor as ") === true && (from === "planned" || from === "claimed" || from === "declined" || from === "rejected")

const trailProblems = (record: ChargeRecord, events: ReadonlyArray<ChargeEvent>): ReadonlyArray<string> => {
  const problems: Array<string> = []
  let state = null as ChargeState | null
  let attempt = 0
  for (const [index, event] of events.entries()) {
    if (event.sequence !== index + 1) problems.push(`line ${event.sequence} of the trail stands at ${index + 1}`)
    if (event.from !== state) problems.push(`line ${event.sequence} goes on from ${event.from}, after ${state}`)
    if (state !== null && event.to !== state && !moves[state].includes(event.to) && !isAdoption(state, event)) problems.push(`${state} may not become ${event.to}`)
    if (event.attempt < attempt) problems.push(`attempt ${event.attempt} follows attempt ${attempt}`)
    state = event.to
    attempt = event.attempt
  }
  if (state !== record.state) problems.push(`the trail ends at ${state}, the row is ${record.state}`)
  if (events.length > 0 && attempt !== record.attempt) problems.push(`the trail ends at attempt ${attempt}, the row is at ${record.attempt}`)
  return problems
}

/** What is known of one charge. */
export interface History {
  readonly record: ChargeRecord
  readonly events: ReadonlyArray<ChargeEvent>
  /** By the processor's books: how often it was paid, and how much in all. */
  readonly payments: number
  readonly paidMinor: number
}

/** Everything that is wrong with it; nothing when the promise was kept. */
export const chargeProblems = ({ events, paidMinor, payments, record }: History): ReadonlyArray<string> => {
  const problems: Array<string> = []
  if (payments > 1) problems.push(`paid ${payments} times`)
  if (payments === 1 && paidMinor !== record.request.amountMinor) problems.push(`${paidMinor} was paid where ${record.request.amountMinor} was asked`)
  if (record.quarantine !== null) problems.push(`quarantined: ${record.quarantine}`)
  problems.push(...trailProblems(record, events))
  switch (record.state) {
    case "succeeded":
      if (payments === 0) problems.push("recorded as paid, and Stripe has no payment")
      break
    case "requires_action":
    case "declined":
    case "rejected":
    case "canceled":
      if (payments > 0) problems.push(`paid, and recorded as ${record.state}`)
      break
    default:
      problems.push(`still ${record.state} long after the last fault`)
  }
  return problems
}

/** Room that it needs under the cap. */
export const heldMinor = ({ request, state }: ChargeRecord): bigint => state === "succeeded" || state === "requires_action" ? BigInt(request.amountMinor) : 0n
