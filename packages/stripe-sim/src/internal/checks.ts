/**
 * What every request for money has in common: terms that Stripe charges and a customer that is there.
 */
import type { Account } from "./Account.ts"
import { isCurrency, refusalOf } from "./amounts.ts"
import { type Answer, invalid, missing } from "./answer.ts"

/** Why this amount in this currency is refused, or undefined. */
export const checkTerms = (account: Account, amountMinor: number, currency: string): Answer | undefined => {
  const unknown = checkCurrency(currency)
  if (unknown !== undefined) return unknown
  if (amountMinor < 1) {
    return invalid("This value must be greater than or equal to 1.", "amount", "parameter_invalid_integer")
  }
  const refusal = refusalOf(amountMinor, currency, account.settings.maximumMinor)
  return refusal === undefined ? undefined : invalid(refusal.message, "amount", refusal.code)
}

/** Why this currency is refused, or undefined. */
export const checkCurrency = (currency: string): Answer | undefined =>
  isCurrency(currency)
    ? undefined
    : invalid(`Invalid currency: ${currency}. Stripe does not support it.`, "currency", "parameter_invalid_string")

/** Why this customer cannot be charged, or undefined; no customer at all is fine. */
export const checkCustomer = (account: Account, id: string | null): Answer | undefined => {
  const found = id === null ? undefined : account.customer(id)
  return id !== null && (found === undefined || found.deleted) ? missing("customer", id, "customer", false) : undefined
}
