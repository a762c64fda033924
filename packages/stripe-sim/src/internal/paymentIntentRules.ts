/**
 * The parameters of the PaymentIntent endpoints, checked by `tsc` against the SDK's own parameter types.
 */
import type Stripe from "stripe"
import type { Rule } from "./params.ts"

/** What older API versions still take: gone from the SDK's types since 2026-09-30. */
type Retired = "payment_method_types"

/** `POST /v1/payment_intents`. */
export const createRules = {
  amount: "int",
  currency: "string",
  allowed_payment_method_types: "strings",
  amount_details: "unsimulated",
  application_fee_amount: "unsimulated",
  automatic_payment_methods: "hash",
  capture_method: ["automatic", "automatic_async"],
  confirm: "bool",
  confirmation_method: ["automatic"],
  confirmation_token: "unsimulated",
  customer: "string",
  customer_account: "unsimulated",
  description: "string",
  error_on_requires_action: "bool",
  excluded_payment_method_types: "unsimulated",
  expand: "strings",
  hooks: "unsimulated",
  mandate: "unsimulated",
  mandate_data: "unsimulated",
  metadata: "metadata",
  off_session: ["true", "false", "one_off", "recurring"],
  on_behalf_of: "unsimulated",
  payment_details: "unsimulated",
  payment_method: "string",
  payment_method_configuration: "unsimulated",
  payment_method_data: "unsimulated",
  payment_method_options: "unsimulated",
  payment_method_types: "retired",
  radar_options: "unsimulated",
  receipt_email: "string",
  return_url: "string",
  setup_future_usage: ["off_session", "on_session"],
  shipping: "unsimulated",
  statement_descriptor: "string",
  statement_descriptor_suffix: "string",
  transfer_data: "unsimulated",
  transfer_group: "string",
  use_stripe_sdk: "bool"
} as const satisfies Record<keyof Stripe.PaymentIntentCreateParams | Retired, Rule>

/** `POST /v1/payment_intents/:id`. */
export const updateRules = {
  amount: "int",
  allowed_payment_method_types: "unsimulated",
  amount_details: "unsimulated",
  application_fee_amount: "unsimulated",
  capture_method: "unsimulated",
  currency: "string",
  customer: "string",
  customer_account: "unsimulated",
  description: "clearable",
  excluded_payment_method_types: "unsimulated",
  expand: "strings",
  hooks: "unsimulated",
  metadata: "metadata",
  payment_details: "unsimulated",
  payment_method: "string",
  payment_method_configuration: "unsimulated",
  payment_method_data: "unsimulated",
  payment_method_options: "unsimulated",
  payment_method_types: "retired",
  receipt_email: "clearable",
  setup_future_usage: "unsimulated",
  shipping: "unsimulated",
  statement_descriptor: "clearable",
  statement_descriptor_suffix: "clearable",
  transfer_data: "unsimulated",
  transfer_group: "clearable"
} as const satisfies Record<keyof Stripe.PaymentIntentUpdateParams | Retired, Rule>

/** `POST /v1/payment_intents/:id/confirm`. */
export const confirmRules = {
  allowed_payment_method_types: "unsimulated",
  amount_details: "unsimulated",
  amount_to_confirm: "unsimulated",
  capture_method: "unsimulated",
  confirmation_token: "unsimulated",
  error_on_requires_action: "bool",
  excluded_payment_method_types: "unsimulated",
  expand: "strings",
  hooks: "unsimulated",
  mandate: "unsimulated",
  mandate_data: "unsimulated",
  off_session: ["true", "false", "one_off", "recurring"],
  payment_details: "unsimulated",
  payment_method: "string",
  payment_method_data: "unsimulated",
  payment_method_options: "unsimulated",
  payment_method_types: "retired",
  radar_options: "unsimulated",
  receipt_email: "unsimulated",
  return_url: "string",
  setup_future_usage: "unsimulated",
  shipping: "unsimulated",
  use_stripe_sdk: "bool"
} as const satisfies Record<keyof Stripe.PaymentIntentConfirmParams | Retired, Rule>

/** `POST /v1/payment_intents/:id/cancel`. */
export const cancelRules = {
  cancellation_reason: ["duplicate", "fraudulent", "requested_by_customer", "abandoned"],
  expand: "strings"
} as const satisfies Record<keyof Stripe.PaymentIntentCancelParams, Rule>

/** `GET /v1/payment_intents/:id`. */
export const retrieveRules = {
  client_secret: "string",
  expand: "strings"
} as const satisfies Record<keyof Stripe.PaymentIntentRetrieveParams, Rule>

/** `GET /v1/payment_intents`. */
export const listRules = {
  created: "range",
  customer: "string",
  customer_account: "unsimulated",
  ending_before: "string",
  expand: "unsimulated",
  limit: "int",
  starting_after: "string"
} as const satisfies Record<keyof Stripe.PaymentIntentListParams, Rule>
