/**
 * Disputes as Stripe shows them, typed by the SDK.
 */
import type Stripe from "stripe"
import type { DisputeRecord } from "./records.ts"

/** A dispute. */
export const dispute = (r: DisputeRecord): Stripe.Dispute => ({
  id: r.id,
  object: "dispute",
  amount: r.amountMinor,
  balance_transactions: [],
  charge: r.charge,
  created: r.createdS,
  currency: r.currency,
  enhanced_eligibility_types: [],
  evidence: {
    access_activity_log: null,
    billing_address: null,
    cancellation_policy: null,
    cancellation_policy_disclosure: null,
    cancellation_rebuttal: null,
    customer_communication: null,
    customer_email_address: null,
    customer_name: null,
    customer_purchase_ip: null,
    customer_signature: null,
    duplicate_charge_documentation: null,
    duplicate_charge_explanation: null,
    duplicate_charge_id: null,
    enhanced_evidence: {},
    product_description: null,
    receipt: null,
    refund_policy: null,
    refund_policy_disclosure: null,
    refund_refusal_explanation: null,
    service_date: null,
    service_documentation: null,
    shipping_address: null,
    shipping_carrier: null,
    shipping_date: null,
    shipping_documentation: null,
    shipping_tracking_number: null,
    uncategorized_file: null,
    uncategorized_text: r.evidence
  },
  evidence_details: {
    due_by: r.dueS,
    enhanced_eligibility: {},
    has_evidence: r.evidence !== null,
    past_due: false,
    submission_count: r.submissions,
    submission_method: r.submissions > 0 ? "manual" : "not_submitted"
  },
  intended_submission_method: null,
  is_charge_refundable: r.inquiry || r.status === "won",
  livemode: false,
  metadata: r.metadata,
  network_reason_code: null,
  payment_intent: r.intent,
  payment_method_details: {
    card: { brand: "visa", case_type: r.inquiry ? "inquiry" : "chargeback", network: "visa", network_reason_code: null },
    type: "card"
  },
  reason: r.reason,
  status: r.status
})
