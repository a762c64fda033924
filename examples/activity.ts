/** A charge as a step of another workflow engine: its activity, step or `run`, which may be repeated as often as that engine likes. */
import type { ChargeInput, PurserHandle } from "@purser/purser"

/** `terminal` makes the error after which the engine asks no more. */
export const chargeStep = (purser: PurserHandle, terminal: (message: string) => Error) => async (invoice: ChargeInput) => {
  const result = await purser.results.charge(invoice)
  // Paid, declined, refused by the cap: settled facts, and the same ones to whoever asks again. The workflow decides what follows.
  if (result._tag === "Success") return { ...result.value }
  // Undecided: the next try finds out. Wrong for good (other terms for the same invoice, for example): a person has to look.
  throw result.error.isRetryable ? result.error : terminal(result.error.message)
}
