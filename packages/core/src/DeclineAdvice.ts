/**
 * What a decline means for the next attempt: whether asking again on its own may help, or a person has to act first.
 *
 * One table, after Stripe's list of decline codes (docs.stripe.com/declines/codes), its advice of issuers
 * (docs.stripe.com/declines/card, `advice_code`) and the codes that its own retries leave alone
 * (docs.stripe.com/billing/revenue-recovery/smart-retries). It decides nothing about money: every decline here is a
 * definitive refusal. A code that stands nowhere waits for a person.
 */

/** `soft`: the same method may work later. `hard`: asking again with the same method is of no use, or forbidden. */
export type DeclineKind = "soft" | "hard"

/** What would help. */
export type DeclineRemedy =
  /** Time alone. */
  | "wait"
  /** The customer's word with the bank. */
  | "ask_bank"
  /** Another payment method. */
  | "new_method"
  /** The right number, date, address or code of the same card. */
  | "correct_details"
  /** The customer's authentication. */
  | "authenticate"
  /** A look by whoever bills: the request itself, or the customer, is in doubt. */
  | "review"

/** What is known of a refusal. */
export interface DeclineCodes {
  readonly code: string
  readonly declineCode: string | null
  /** The issuer's advice by way of Stripe, if it gave any. */
  readonly adviceCode: string | null
}

/** What follows from it. */
export interface DeclineAdvice {
  readonly kind: DeclineKind
  readonly remedy: DeclineRemedy
}

const soft = (remedy: DeclineRemedy): DeclineAdvice => ({ kind: "soft", remedy })
const hard = (remedy: DeclineRemedy): DeclineAdvice => ({ kind: "hard", remedy })

/** Codes after which the networks forbid another try with the same card, whatever the issuer advises. */
const never: ReadonlySet<string> = new Set([
  "lost_card", "stolen_card", "pickup_card", "restricted_card", "revocation_of_authorization", "revocation_of_all_authorizations",
  "stop_payment_order", "do_not_try_again", "fraudulent", "merchant_blacklist", "security_violation", "highest_risk_level"
])

const table: Readonly<Record<string, DeclineAdvice>> = {
  approve_with_id: soft("wait"),
  call_issuer: soft("ask_bank"),
  card_declined: soft("ask_bank"),
  card_velocity_exceeded: soft("wait"),
  could_not_process: soft("wait"),
  do_not_honor: soft("ask_bank"),
  generic_decline: soft("ask_bank"),
  insufficient_funds: soft("wait"),
  issuer_not_available: soft("wait"),
  no_action_taken: soft("ask_bank"),
  processing_error: soft("wait"),
  reenter_transaction: soft("wait"),
  try_again_later: soft("wait"),
  withdrawal_count_limit_exceeded: soft("wait"),

  authentication_required: hard("authenticate"),
  card_not_supported: hard("new_method"),
  currency_not_supported: hard("new_method"),
  debit_not_authorized: hard("new_method"),
  do_not_try_again: hard("ask_bank"),
  duplicate_transaction: hard("review"),
  expired_card: hard("new_method"),
  fraudulent: hard("review"),
  highest_risk_level: hard("review"),
  incorrect_address: hard("correct_details"),
  incorrect_cvc: hard("correct_details"),
  incorrect_number: hard("correct_details"),
  incorrect_pin: hard("correct_details"),
  incorrect_zip: hard("correct_details"),
  invalid_account: hard("new_method"),
  invalid_amount: hard("review"),
  invalid_cvc: hard("correct_details"),
  invalid_expiry_month: hard("correct_details"),
  invalid_expiry_year: hard("correct_details"),
  invalid_number: hard("correct_details"),
  invalid_pin: hard("correct_details"),
  lost_card: hard("new_method"),
  merchant_blacklist: hard("review"),
  new_account_information_available: hard("new_method"),
  not_permitted: hard("ask_bank"),
  offline_pin_required: hard("new_method"),
  online_or_offline_pin_required: hard("new_method"),
  pickup_card: hard("new_method"),
  pin_try_exceeded: hard("new_method"),
  restricted_card: hard("new_method"),
  revocation_of_all_authorizations: hard("new_method"),
  revocation_of_authorization: hard("new_method"),
  security_violation: hard("ask_bank"),
  service_not_allowed: hard("ask_bank"),
  stolen_card: hard("new_method"),
  stop_payment_order: hard("new_method"),
  testmode_decline: hard("review"),
  transaction_not_allowed: hard("new_method")
}

/** The issuer knows its card better than the table does. */
const advices: Readonly<Record<string, DeclineAdvice>> = {
  do_not_try_again: hard("new_method"),
  try_again_later: soft("wait"),
  confirm_card_data: hard("correct_details")
}

const entry = (of: Readonly<Record<string, DeclineAdvice>>, name: string | null): DeclineAdvice | undefined =>
  name !== null && Object.hasOwn(of, name) ? of[name] : undefined

/** What follows from a decline: a ban of the networks first, then the issuer's advice, then the decline code, then the error code. */
export const declineAdvice = ({ adviceCode, code, declineCode }: DeclineCodes): DeclineAdvice => {
  const banned = [declineCode, code].find((name) => name !== null && never.has(name))
  if (banned !== undefined) return table[banned!] ?? hard("new_method")
  return entry(advices, adviceCode) ?? (declineCode === null ? undefined : entry(table, declineCode) ?? hard("review"))
    ?? entry(table, code) ?? hard("review")
}

/** Whether the customer has to authenticate: a state of its own, and no refusal of the bank. */
export const wantsAuthentication = ({ code, declineCode }: Pick<DeclineCodes, "code" | "declineCode">): boolean =>
  code === "authentication_required" || declineCode === "authentication_required"
