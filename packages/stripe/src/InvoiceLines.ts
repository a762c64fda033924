/**
 * What stands on the invoice of a charge. The lines are a function of the request alone, because a charge that is taken up
 * again asks for them anew; each has an id of its own, by which a line that is there is known.
 */
import type { ChargeRequest } from "@purser/core"

/** One line; `amountMinor` in minor units of the request's currency, negative for a credit. */
export interface InvoiceLine {
  /** 1 to 64 letters, digits, `_` or `-`; unique on its invoice. */
  readonly id: string
  readonly amountMinor: number
  readonly description?: string
}

/** The lines of a request; their sum must be its amount, or the charge is quarantined before anything is finalized. */
export type InvoiceLines = (request: ChargeRequest) => ReadonlyArray<InvoiceLine>

/** One line with the whole amount, named after the item and the period. */
export const oneLine: InvoiceLines = (request) => [{
  id: "charge",
  amountMinor: request.amountMinor,
  description: request.item === undefined ? request.billingPeriod : `${request.item}, ${request.billingPeriod}`
}]

/** What is wrong with lines, in words, or `undefined`. */
export const linesProblem = (lines: ReadonlyArray<InvoiceLine>): string | undefined => {
  if (lines.length === 0) return "an invoice needs a line"
  const odd = lines.find(({ amountMinor, id }) => !/^[A-Za-z0-9_-]{1,64}$/.test(id) || !Number.isSafeInteger(amountMinor))
  if (odd !== undefined) return `line ${JSON.stringify(odd.id)} needs an id of letters, digits, _ or - and a whole amount`
  return new Set(lines.map(({ id }) => id)).size === lines.length ? undefined : "two lines have the same id"
}
