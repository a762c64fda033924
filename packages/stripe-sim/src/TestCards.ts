/**
 * How a payment method behaves, by the name Stripe's documentation gives its test methods.
 *
 * Defines the table of test cards and bank accounts and the reading of an id as one of them. Refuses to hold any
 * state: an account decides which ids exist, this table only says what a card does when it is charged.
 */

/** What an issuer may say about another try, by way of Stripe. */
export type AdviceCode = "confirm_card_data" | "do_not_try_again" | "try_again_later"

/** A refusal by the card network: Stripe's `code`, its `decline_code` and the issuer's advice where there are any, and the public message. */
export interface Decline {
  readonly code: "card_declined" | "expired_card" | "incorrect_cvc" | "processing_error" | "authentication_required"
  readonly declineCode: string | undefined
  readonly message: string
  readonly adviceCode?: AdviceCode
}

/** When a card asks its holder to authenticate: never, on session only (a prior set-up covers the rest), or always. */
export type Authentication = "never" | "on_session" | "always"

/** What happens when a method is charged. */
export interface Behaviour {
  readonly type: "card" | "us_bank_account"
  readonly brand: string
  readonly last4: string
  readonly authentication: Authentication
  /** The money settles later, by an explicit act on the simulator; until then the payment is `processing`. */
  readonly settlesLater: boolean
  readonly decline: Decline | undefined
  /** A debit that its bank settles after some days on the clock, as well as by that act. */
  readonly settlesByClock?: boolean
  /** What becomes of a refund: at once (when left out), after an hour on the clock, or it fails after that hour. */
  readonly refund?: "succeeds" | "waits" | "fails"
  /** The holder disputes the payment as soon as it is made. */
  readonly dispute?: { readonly reason: string; readonly inquiry: boolean }
}

const declined = (declineCode: string, message = "Your card was declined."): Decline => ({
  code: "card_declined",
  declineCode,
  message
})

const works: Behaviour = {
  type: "card",
  brand: "visa",
  last4: "4242",
  authentication: "never",
  settlesLater: false,
  decline: undefined
}

const refused = (last4: string, decline: Decline): Behaviour => ({ ...works, last4, decline })
const branded = (brand: string, last4: string): Behaviour => ({ ...works, brand, last4 })
const asks = (last4: string, authentication: Authentication, decline?: Decline): Behaviour => ({
  ...works,
  last4,
  authentication,
  decline
})
const bank = (last4: string, decline?: Decline): Behaviour => ({
  ...works,
  type: "us_bank_account",
  brand: "",
  last4,
  settlesLater: true,
  settlesByClock: true,
  decline
})

/** The off-session answer of a card that wants its holder present. */
export const authenticationRequired: Decline = {
  code: "authentication_required",
  declineCode: "authentication_required",
  message: "Your card was declined. This transaction requires authentication."
}

const insufficientFunds = declined("insufficient_funds", "Your card has insufficient funds.")
const genericDecline = declined("generic_decline")
const processingError: Decline = {
  code: "processing_error",
  declineCode: undefined,
  message: "An error occurred while processing your card. Try again in a little bit."
}

/** A card that succeeds: what an account holds for an id that nothing else is known of. */
export const succeeding: Behaviour = works

const table: ReadonlyMap<string, Behaviour> = new Map<string, Behaviour>([
  ["visa", works],
  ["visa_debit", branded("visa", "5556")],
  ["mastercard", branded("mastercard", "4444")],
  ["mastercard_debit", branded("mastercard", "3222")],
  ["mastercard_prepaid", branded("mastercard", "5100")],
  ["amex", branded("amex", "8431")],
  ["discover", branded("discover", "1117")],
  ["diners", branded("diners", "0004")],
  ["jcb", branded("jcb", "0505")],
  ["unionpay", branded("unionpay", "0005")],
  ["threeDSecureOptional", branded("visa", "3055")],
  ["threeDSecureNotSupported", branded("amex", "0005")],
  ["createDispute", { ...branded("visa", "0259"), dispute: { reason: "fraudulent", inquiry: false } }],
  ["createDisputeProductNotReceived", { ...branded("visa", "2685"), dispute: { reason: "product_not_received", inquiry: false } }],
  ["createDisputeInquiry", { ...branded("visa", "1976"), dispute: { reason: "fraudulent", inquiry: true } }],
  ["pendingRefund", { ...branded("visa", "7726"), refund: "waits" }],
  ["refundFail", { ...branded("visa", "5126"), refund: "fails" }],
  ["bypassPending", branded("visa", "0077")],
  ["riskLevelElevated", branded("visa", "9235")],
  ["cvcCheckFail", branded("visa", "0101")],
  ["avsFail", branded("visa", "0010")],
  ["chargeDeclined", refused("0002", genericDecline)],
  ["chargeDeclinedInsufficientFunds", refused("9995", insufficientFunds)],
  ["chargeDeclinedLostCard", refused("9987", declined("lost_card"))],
  ["chargeDeclinedStolenCard", refused("9979", declined("stolen_card"))],
  ["chargeDeclinedFraudulent", refused("0019", declined("fraudulent"))],
  ["chargeDeclinedExpiredCard", refused("0069", {
    code: "expired_card",
    declineCode: undefined,
    message: "Your card has expired."
  })],
  ["chargeDeclinedIncorrectCvc", refused("0127", {
    code: "incorrect_cvc",
    declineCode: undefined,
    message: "Your card's security code is incorrect."
  })],
  ["chargeDeclinedProcessingError", refused("0119", processingError)],
  ["chargeDeclinedVelocityLimitExceeded", refused(
    "6975",
    declined(
      "card_velocity_exceeded",
      "Your card was declined for making repeated attempts too frequently or exceeding its amount limit."
    )
  )],
  ["chargeCustomerFail", refused("0341", genericDecline)],
  ["riskLevelHighest", refused("4954", declined("fraudulent"))],
  ["radarBlock", refused("0101", declined("fraudulent"))],
  ["authenticationRequired", asks("3184", "always")],
  ["authenticationRequiredOnSetup", asks("3155", "always")],
  ["authenticationRequiredSetupForOffSession", asks("0446", "on_session")],
  ["authenticationRequiredChargeDeclinedInsufficientFunds", asks("3178", "always", insufficientFunds)],
  ["threeDSecure2Required", asks("3220", "always")],
  ["threeDSecureRequired", asks("3063", "always")],
  ["threeDSecureRequiredChargeDeclined", asks("1629", "always", genericDecline)],
  ["threeDSecureRequiredProcessingError", asks("0525", "always", processingError)],
  ["processing", { ...works, last4: "0078", settlesLater: true }]
])

const banks: ReadonlyMap<string, Behaviour> = new Map<string, Behaviour>([
  ["success", bank("6789")],
  ["processing", { ...bank("6789"), settlesByClock: false }],
  ["accountClosed", bank("1111", declined("account_closed", "The customer's bank account has been closed."))],
  ["noAccount", bank("1112", declined("no_account", "The customer's bank account could not be located."))],
  ["insufficientFunds", bank("1113", declined("insufficient_funds", "The customer's account has insufficient funds to cover this payment."))],
  ["debitNotAuthorized", bank("1116", declined("debit_not_authorized", "The customer has notified their bank that this payment was unauthorized."))]
])

const advices: ReadonlyArray<readonly [name: string, code: AdviceCode]> = [
  ["AdviceConfirmCardData", "confirm_card_data"], ["AdviceDoNotTryAgain", "do_not_try_again"], ["AdviceTryAgainLater", "try_again_later"]
]

/** A card that is declined may bear an advice behind its name, as in `chargeDeclinedAdviceDoNotTryAgain`: the simulator's own. */
const byTableName = (name: string): Behaviour | undefined => {
  const advice = advices.find(([suffix]) => name.endsWith(suffix))
  if (advice === undefined) return table.get(name)
  const behaviour = table.get(name.slice(0, -advice[0].length))
  return behaviour?.decline === undefined ? undefined : { ...behaviour, decline: { ...behaviour.decline, adviceCode: advice[1] } }
}

const byCardName = (name: string): Behaviour | undefined => {
  const known = byTableName(name)
  if (known !== undefined) return known
  if (name.startsWith("visa_")) return byTableName(name.slice(5))
  // pm_card_de, pm_card_us …: a card that succeeds, issued in that country.
  return /^[a-z]{2}$/.test(name) ? works : undefined
}

/**
 * The behaviour that an id names, if it is one of Stripe's public test ids (`pm_card_…`, `tok_…`,
 * `pm_usBankAccount…`) or the simulator's own `pm_sim_…`. The infix `visa_` may be there or not.
 */
export const ofTestId = (id: string): Behaviour | undefined => {
  if (id.startsWith("pm_card_")) return byCardName(id.slice(8))
  if (id.startsWith("tok_")) return byCardName(id.slice(4))
  if (id.startsWith("pm_sim_")) return byCardName(id.slice(7))
  if (id === "pm_usBankAccount") return banks.get("success")
  return id.startsWith("pm_usBankAccount_") ? banks.get(id.slice(17)) : undefined
}

/** True for ids that only the public table may answer; an unknown name among them does not exist. */
export const isTestId = (id: string): boolean =>
  id.startsWith("pm_card_") || id.startsWith("pm_sim_") || id.startsWith("pm_usBankAccount") || id.startsWith("tok_")

/**
 * The behaviour of an id made at first use: the test name in its last part if there is one
 * (`cus_7_chargeDeclinedLostCard`), else a card that succeeds.
 */
export const ofAnyId = (id: string): Behaviour => byTableName(id.slice(id.lastIndexOf("_") + 1)) ?? works
