/** What a person, or a worker, can do next about a charge, in a sentence. */
import { type ChargeRecord, declineAdvice, type DeclineRemedy } from "@purser/core"
import type { GivenBack } from "./givenBack.ts"

const remedies: Record<DeclineRemedy, string> = {
  wait: "time may help",
  ask_bank: "the customer has to ask the bank",
  new_method: "another payment method is needed (purser retry --payment-method)",
  correct_details: "the details of the card have to be corrected",
  authenticate: "the customer has to authenticate",
  review: "look at the request and the customer first"
}

/** One sentence about this state; `back` is what went back of its payment; all is left without it. */
export const nextStep = (record: ChargeRecord, back?: GivenBack): string => {
  if (record.quarantine !== null) return "A person has to look at both sides: nobody charges it before."
  const { outcome } = record
  switch (record.state) {
    case "planned":
      return "Nobody has begun: the same run goes on with it."
    case "claimed":
    case "attached":
      return "A worker has it, or a sweep takes it up when its lease has run out."
    case "processing":
      return "Stripe settles it later; sweeps and webhooks look at it, and nothing has to be done."
    case "requires_action": {
      const intent = record.paymentIntentId ?? "the payment"
      return `The customer has to authenticate ${intent}; a webhook or a retry then finds it paid. Or retry with another --payment-method.`
    }
    case "declined": {
      if (outcome?._tag !== "Declined") return "It was declined."
      const { kind, remedy } = declineAdvice(outcome)
      if (kind === "hard") return `A hard decline: ${remedies[remedy]}. It is not asked again without a person.`
      return record.nextAttemptAtMs === null
        ? `A soft decline: ${remedies[remedy]}. Policy asks no more; a person may.`
        : `A soft decline: ${remedies[remedy]}. Policy asks again from ${new Date(record.nextAttemptAtMs).toISOString()} (purser retry --due).`
    }
    case "rejected":
      return "It was refused before money could move: remove the cause, then purser retry."
    case "succeeded":
      if (back === undefined || back.leftMinor === back.receivedMinor) return "It is paid. purser refund gives it back."
      if (back.leftMinor > 0) return "It is paid. purser refund gives the rest back."
      return "It was paid, and nothing is left to give back. purser rebill bills it anew once all of it is back."
    case "canceled":
      return "It was canceled, and nothing is asked again."
  }
}
