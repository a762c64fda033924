/**
 * Refunds at Stripe: one POST that gives money back, its look-up by our metadata, and the object as it stands.
 *
 * The key is the refund's own and its attempt's; no suffix ever gets round a stored answer, since that could give the same
 * money back twice. A refund names the charge where the ledger knows it, else the PaymentIntent.
 */
import { type GatewayRefund, type RefundGateway, type RefundOrder, UnexpectedAnswer } from "@purser/core"
import { Effect, Schema } from "effect"
import type { StripeClient } from "../StripeClient.ts"
import { idOf, Nullable, Reference } from "./answers.ts"
import { askFor } from "./ask.ts"
import { listOurs } from "./listOurs.ts"
import { reasonOf } from "./refusal.ts"

/** A refund. Stripe's types let `status` be anything; what we do not know was not understood. */
const Refund = Schema.Struct({
  object: Schema.Literal("refund"),
  id: Schema.NonEmptyString,
  status: Schema.Literals(["pending", "requires_action", "succeeded", "failed", "canceled"]),
  amount: Schema.Int,
  currency: Schema.NonEmptyString,
  charge: Nullable(Reference),
  payment_intent: Nullable(Reference),
  failure_reason: Nullable(Schema.String),
  pending_reason: Nullable(Schema.String),
  metadata: Nullable(Schema.Record(Schema.String, Schema.String))
})

const toRefund = (refund: typeof Refund.Type, clean: (text: string) => string): GatewayRefund => {
  const why = refund.failure_reason ?? refund.pending_reason ?? null
  return {
    id: refund.id,
    status: refund.status,
    amountMinor: refund.amount,
    currency: refund.currency,
    paymentIntentId: idOf(refund.payment_intent),
    chargeId: idOf(refund.charge),
    refundKey: refund.metadata?.["refund_key"] ?? null,
    detail: why === null ? null : clean(why)
  }
}

/** For a paid invoice the ledger may know the PaymentIntent in the charge's place. */
const targetOf = ({ chargeId, paymentIntentId }: RefundOrder) => {
  const id = chargeId ?? paymentIntentId
  return id.startsWith("pi_") ? { payment_intent: id } : { charge: id }
}

/** The idempotency key of one attempt at one refund. */
export const refundCallKey = (order: Pick<RefundOrder, "refundKey" | "attempt">): string => `${order.refundKey}:refund:${order.attempt}`

/** Refunds on a client. */
export const makeRefunds = (client: StripeClient["Service"]): RefundGateway["Service"] => {
  const read = Effect.fnUntraced(function*(order: RefundOrder, operation: string, json: unknown, requestId: string | null) {
    return toRefund(yield* askFor(client, order).read(operation, Refund, json, requestId), client.scrub)
  })

  return {
    refund: Effect.fnUntraced(function*(order) {
      const ask = askFor(client, order)
      const answer = yield* ask.call("refund", (stripe) =>
        stripe.refunds.create({
          ...targetOf(order),
          amount: order.amountMinor,
          ...(order.reason === null ? {} : { reason: order.reason }),
          metadata: { charge_key: order.chargeKey, refund_key: order.refundKey, refund_id: order.refundId, attempt: String(order.attempt) }
        }, { idempotencyKey: refundCallKey(order) }))
      if (answer.status !== 200) return yield* ask.fail(reasonOf("refund", answer, client.scrub), answer.requestId)
      return yield* read(order, "refund", answer.json, answer.requestId)
    }),
    find: Effect.fnUntraced(function*(order) {
      const ours = yield* listOurs(client, order, 0, (stripe, window) => stripe.refunds.list({ ...targetOf(order), ...window }))
      const refunds = yield* Effect.forEach(ours, ({ json, requestId }) => read(order, "find_refund", json, requestId))
      return refunds.filter(({ refundKey }) => refundKey === order.refundKey)
    }),
    retrieve: Effect.fnUntraced(function*(order, id) {
      const ask = askFor(client, order)
      const operation = "retrieve_refund"
      const answer = yield* ask.call(operation, (stripe) => stripe.refunds.retrieve(id))
      if (answer.status !== 200) return yield* ask.fail(reasonOf(operation, answer, client.scrub), answer.requestId)
      const refund = yield* read(order, operation, answer.json, answer.requestId)
      return refund.id === id
        ? refund
        : yield* ask.fail(new UnexpectedAnswer({ operation, detail: `asked for ${id}, got ${client.scrub(refund.id)}` }), answer.requestId)
    })
  }
}
