/** What a web client is told about a charge. */
import type { ChargeFailure, ChargeInput, PurserHandle, PurserResult } from "@purser/purser"
import type { ChargeOutcome } from "@purser/core"

/** A status and a body, for any server. */
export interface Answer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

const ofOutcome = (outcome: ChargeOutcome): Answer => {
  switch (outcome._tag) {
    case "Succeeded":
      return { status: 200, body: { paid: true, paymentIntent: outcome.paymentIntentId, before: outcome.alreadySettled } }
    case "Processing":
      return { status: 202, body: { paid: false, why: "the bank takes its time" } }
    case "RequiresAction":
      return { status: 202, body: { paid: false, why: "the customer has to authenticate", paymentIntent: outcome.paymentIntentId } }
    case "Declined":
      return { status: 402, body: { paid: false, why: outcome.declineCode ?? outcome.code } }
    case "Rejected":
    case "Canceled":
      return { status: 422, body: { paid: false, why: outcome.detail } }
  }
}

// The compiler knows every case: a new one does not pass unnoticed.
const ofFailure = (error: ChargeFailure): Answer => {
  if (error._tag === "InvalidInput") return { status: 400, body: { error: error.message } }
  if (error._tag === "LedgerError" && error.reason._tag === "ChargeConflict") {
    return { status: 409, body: { error: "billed before with other terms", amountMinor: error.reason.expected.amountMinor } }
  }
  // Whatever is said of the money, the same request again is safe: the client may simply repeat it.
  return { status: error.isRetryable ? 503 : 500, body: { error: error.message, money: error.outcome } }
}

const ofResult = (result: PurserResult<ChargeOutcome, ChargeFailure>): Answer =>
  result._tag === "Success" ? ofOutcome(result.value) : ofFailure(result.error)

/** Charges what a client has sent; what is no charge at all is refused by name. */
export const answerCharge = async (purser: PurserHandle, body: unknown): Promise<Answer> =>
  ofResult(await purser.results.charge(body as ChargeInput))
