/**
 * Records as Stripe shows them: every shape is the SDK's own type, so `tsc` notices when Stripe's API moves.
 *
 * Refuses to decide anything; it only writes out what a record already says.
 */
import type Stripe from "stripe"
import type {
  ChargeRecord,
  CustomerRecord,
  IntentFailure,
  IntentRecord,
  PaymentMethodRecord,
  RefundRecord
} from "./records.ts"

/** Where Stripe explains an error code. */
export const docUrl = (code: string): string => `https://docs.stripe.com/error-codes#${code.replaceAll("_", "-")}`

const noBillingDetails = { address: null, email: null, name: null, phone: null, tax_id: null }

/** A live customer. */
export const customer = (r: CustomerRecord): Stripe.Customer => ({
  id: r.id,
  object: "customer",
  address: null,
  balance: r.balanceMinor,
  created: r.createdS,
  currency: null,
  default_source: null,
  delinquent: false,
  description: r.description,
  discount: null,
  email: r.email,
  invoice_settings: {
    custom_fields: null,
    default_payment_method: r.defaultPaymentMethod,
    footer: null,
    rendering_options: null
  },
  livemode: false,
  metadata: r.metadata,
  name: r.name,
  phone: r.phone,
  preferred_locales: [],
  shipping: null,
  tax_exempt: "none",
  test_clock: r.testClock
})

/** What is left of a deleted customer. */
export const deletedCustomer = (id: string): Stripe.DeletedCustomer => ({ id, object: "customer", deleted: true })

/** A payment method. */
export const paymentMethod = (r: PaymentMethodRecord): Stripe.PaymentMethod => {
  const common = {
    id: r.id,
    object: "payment_method" as const,
    billing_details: noBillingDetails,
    created: r.createdS,
    customer: r.customer,
    customer_account: null,
    livemode: false,
    metadata: r.metadata
  }
  return r.behaviour.type === "card"
    ? {
      ...common,
      type: "card",
      card: {
        brand: r.behaviour.brand,
        checks: { address_line1_check: null, address_postal_code_check: null, cvc_check: null },
        country: "US",
        display_brand: r.behaviour.brand,
        exp_month: 12,
        exp_year: 2034,
        fingerprint: `sim${r.behaviour.last4}`,
        funding: "credit",
        generated_from: null,
        last4: r.behaviour.last4,
        networks: { available: [r.behaviour.brand], preferred: null },
        regulated_status: "unregulated",
        three_d_secure_usage: { supported: true },
        wallet: null
      }
    }
    : {
      ...common,
      type: "us_bank_account",
      us_bank_account: {
        account_holder_type: "individual",
        account_type: "checking",
        bank_name: "STRIPE TEST BANK",
        financial_connections_account: null,
        fingerprint: `sim${r.behaviour.last4}`,
        last4: r.behaviour.last4,
        networks: { preferred: "ach", supported: ["ach"] },
        routing_number: "110000000",
        status_details: {}
      }
    }
}

const lastPaymentError = (failure: IntentFailure): Stripe.PaymentIntent.LastPaymentError => ({
  ...(failure.decline.adviceCode === undefined ? {} : { advice_code: failure.decline.adviceCode }),
  ...(failure.chargeId === undefined ? {} : { charge: failure.chargeId }),
  code: failure.decline.code,
  ...(failure.decline.declineCode === undefined ? {} : { decline_code: failure.decline.declineCode }),
  doc_url: docUrl(failure.decline.code),
  message: failure.decline.message,
  payment_method: paymentMethod(failure.method),
  type: "card_error"
})

/** A PaymentIntent; `expanded` replaces ids by objects where the caller asked for them. */
export const paymentIntent = (
  r: IntentRecord,
  expanded?: Partial<Pick<Stripe.PaymentIntent, "customer" | "latest_charge" | "payment_method">>
): Stripe.PaymentIntent => ({
  id: r.id,
  object: "payment_intent",
  allowed_payment_method_types: r.allowedTypes === null ? null : [...r.allowedTypes],
  amount: r.amountMinor,
  amount_capturable: 0,
  amount_received: r.amountReceivedMinor,
  application: null,
  application_fee_amount: null,
  automatic_payment_methods: r.automaticMethods === "off"
    ? null
    : { allow_redirects: r.automaticMethods, enabled: true },
  canceled_at: r.canceledAtS,
  cancellation_reason: r.cancellationReason,
  capture_method: r.captureMethod,
  client_secret: `${r.id}_secret_sim`,
  confirmation_method: "automatic",
  created: r.createdS,
  currency: r.currency,
  customer: r.customer,
  customer_account: null,
  description: r.description,
  excluded_payment_method_types: null,
  last_payment_error: r.failure === null ? null : lastPaymentError(r.failure),
  latest_charge: r.latestCharge,
  livemode: false,
  managed_payments: null,
  metadata: r.metadata,
  next_action: r.status === "requires_action"
    ? { type: "use_stripe_sdk", use_stripe_sdk: { type: "three_d_secure_redirect", stripe_js: "https://hooks.stripe.com" } }
    : null,
  on_behalf_of: null,
  payment_method: r.paymentMethod,
  payment_method_configuration_details: null,
  payment_method_options: { card: { installments: null, mandate_options: null, network: null, request_three_d_secure: "automatic" } },
  payment_method_types: [...r.paymentMethodTypes],
  payment_record: null,
  processing: r.status === "processing" ? { type: "card", card: {} } : null,
  receipt_email: r.receiptEmail,
  review: null,
  setup_future_usage: r.setupFutureUsage,
  shipping: null,
  source: null,
  statement_descriptor: r.statementDescriptor,
  statement_descriptor_suffix: r.statementDescriptorSuffix,
  status: r.status,
  transfer_data: null,
  transfer_group: r.transferGroup,
  ...expanded
})

/** A charge; `expanded` replaces ids by objects where the caller asked for them. */
export const charge = (
  r: ChargeRecord,
  expanded?: Partial<Pick<Stripe.Charge, "customer" | "payment_intent" | "refunds">>
): Stripe.Charge => ({
  id: r.id,
  object: "charge",
  amount: r.amountMinor,
  amount_captured: r.status === "succeeded" ? r.amountMinor : 0,
  amount_refunded: r.refundedMinor,
  application: null,
  application_fee: null,
  application_fee_amount: null,
  balance_transaction: r.status === "succeeded" ? `txn_${r.id.slice(3)}` : null,
  billing_details: noBillingDetails,
  calculated_statement_descriptor: null,
  captured: r.status === "succeeded",
  created: r.createdS,
  currency: r.currency,
  customer: r.customer,
  description: r.description,
  disputed: r.dispute !== null,
  failure_balance_transaction: null,
  failure_code: r.decline?.code ?? null,
  failure_message: r.decline?.message ?? null,
  fraud_details: {},
  livemode: false,
  metadata: r.metadata,
  on_behalf_of: null,
  outcome: {
    advice_code: r.decline?.adviceCode ?? null,
    network_advice_code: null,
    network_decline_code: null,
    network_status: r.decline === null ? "approved_by_network" : "declined_by_network",
    reason: r.decline?.declineCode ?? r.decline?.code ?? null,
    risk_level: "normal",
    seller_message: r.decline === null ? "Payment complete." : "The bank declined the payment.",
    type: r.decline === null ? "authorized" : "issuer_declined"
  },
  paid: r.status !== "failed",
  payment_intent: r.intent,
  payment_method: r.method.id,
  payment_method_details: { type: r.method.behaviour.type },
  receipt_email: null,
  receipt_number: null,
  receipt_url: null,
  refunded: r.status === "succeeded" && r.refundedMinor === r.amountMinor,
  review: null,
  shipping: null,
  source: null,
  source_transfer: null,
  statement_descriptor: null,
  statement_descriptor_suffix: null,
  status: r.status,
  transfer_data: null,
  transfer_group: null,
  ...expanded
})

/** A refund. */
export const refund = (r: RefundRecord, method: string | null, customerId: string | null): Stripe.Refund => ({
  id: r.id,
  object: "refund",
  amount: r.amountMinor,
  balance_transaction: r.status === "succeeded" ? `txn_${r.id.slice(3)}` : null,
  charge: r.charge,
  created: r.createdS,
  currency: r.currency,
  customer: customerId,
  customer_account: null,
  destination_details: {
    card: { reference_status: r.status === "succeeded" ? "available" : "pending", reference_type: "acquirer_reference_number", type: "refund" },
    type: "card"
  },
  ...(r.failureReason === null ? {} : { failure_reason: r.failureReason }),
  metadata: r.metadata,
  payment_intent: r.intent,
  payment_method: method,
  ...(r.status === "pending" ? { pending_reason: "processing" } : {}),
  reason: r.reason,
  receipt_number: null,
  source_transfer_reversal: null,
  status: r.status,
  transfer_reversal: null
})
