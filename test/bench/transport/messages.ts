/** The JSON that every program of this comparison moves, and how the two sides of one are told apart. */
import { type AmountMinor, checkedRequest, type ChargeRequest, checkedSucceeded } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { Schema } from "effect"

/** The messages of the service: the same fields as a charge and its outcome. */
export const order = {
  request: Schema.Struct({
    namespace: Schema.String,
    customer_id: Schema.String,
    billing_period: Schema.String,
    amount_minor: Schema.Int,
    currency: Schema.String,
    stripe_customer_id: Schema.String
  }),
  reply: Schema.Struct({
    status: Schema.String,
    charge_id: Schema.String,
    payment_intent_id: Schema.String,
    amount_received: Schema.Int
  })
}
export type Order = typeof order.request.Type

/** One request of the service. */
export const orderOf = (index: number): Order => ({
  namespace: "zmq-billing",
  customer_id: `cust_${index}`,
  billing_period: "2026-07",
  amount_minor: 1000 + index,
  currency: "usd",
  stripe_customer_id: "cus_123"
})

/** Its reply. */
export const replyTo = ({ amount_minor }: Order) => ({
  status: "ok",
  charge_id: "ch_3QZx2eZvKYlo2C1q0abcdefg",
  payment_intent_id: "pi_3QZx2eZvKYlo2C1q0abcdefg",
  amount_received: amount_minor
})

/**
 * One charge, made as a run makes it of a row that it has checked, and the outcome of a handler that takes the money. Like the
 * objects of raw zeromq.js it is made when it is sent: many that are made before are a burden of their own.
 */
const usual = chargeFor("cust", "2026-07")
export const chargeOf = (index: number): ChargeRequest =>
  checkedRequest({
    namespace: usual.namespace,
    customerId: `cust_${index}`,
    billingPeriod: usual.billingPeriod,
    amountMinor: 1000 + index as AmountMinor,
    currency: usual.currency,
    stripeCustomerId: `cus_cust_${index}`,
    paymentMethod: "pm_card_visa"
  })
export const paid = ({ amountMinor, chargeKey }: ChargeRequest) =>
  checkedSucceeded({
    chargeKey,
    alreadySettled: false,
    paymentIntentId: "pi_3QZx2eZvKYlo2C1q0abcdefg",
    chargeId: "ch_3QZx2eZvKYlo2C1q0abcdefg",
    amountReceivedMinor: amountMinor
  })

/** Requests in flight, of every program. */
export const window = 1000

/** The same charge and outcome as the contract's wire has them, for raw zeromq.js. */
export const chargeTextOf = (index: number) => ({
  namespace: "zmq-billing",
  customer_id: `cust_${index}`,
  billing_period: "2026-07",
  amount_minor: 1000 + index,
  currency: "usd",
  stripe_customer_id: `cus_cust_${index}`,
  payment_method: "pm_card_visa"
})
export const paidTextOf = ({ amount_minor }: ReturnType<typeof chargeTextOf>) => ({
  _tag: "Succeeded",
  chargeKey: "0123456789abcdef0123456789abcdef",
  alreadySettled: false,
  paymentIntentId: "pi_3QZx2eZvKYlo2C1q0abcdefg",
  chargeId: "ch_3QZx2eZvKYlo2C1q0abcdefg",
  amountReceivedMinor: amount_minor
})

/** The patterns (raw zeromq.js has no broker: `majordomo` is compared with its DEALER and ROUTER), and what is measured on each: raw zeromq.js, a service, a service in batches, charges, and raw zeromq.js with the JSON of charges. */
export const patterns = ["router-dealer", "push-pull", "req-rep", "pub-sub", "majordomo"] as const
export const programs = ["raw", "service", "batch", "charges", "raw with charges"] as const
export type Pattern = (typeof patterns)[number]
export type Program = (typeof programs)[number]

/** Requests under way on a pattern. */
export const windowOf = (pattern: Pattern): number => pattern === "req-rep" ? 1 : window
