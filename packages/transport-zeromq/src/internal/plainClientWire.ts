/**
 * Charges in the plain form, one a message, for workers that speak only that: a fleet's own programs, while it moves.
 *
 * Everything that the answer must be matched with travels as the message's `seq`, which such workers give back as `ack_seq`;
 * nothing is remembered here. A REP worker may leave it out: a REQ socket has one question at a time.
 */
import {
  Backpressure, Canceled, ChargeError, ChargeKey, type ChargeOutcome, type ChargeRequest, checkedSucceeded, Declined, defaultNamespace, MalformedMessage, PeerUnreachable, Processing,
  Rejected, RequiresAction, RunMark, type SubmitError, TransportError, UnexpectedAnswer
} from "@purser/core"
import { Result, Schema } from "effect"
import type { ReplyOf } from "./errand.ts"
import type { ClientWire } from "./windowClient.ts"

const PlainError = Schema.Struct({
  type: Schema.optionalKey(Schema.String),
  reason: Schema.optionalKey(Schema.String),
  decline_code: Schema.optionalKey(Schema.NullOr(Schema.String)),
  message: Schema.optionalKey(Schema.String),
  retryable: Schema.optionalKey(Schema.Boolean)
})
const PlainReply = Schema.Struct({
  status: Schema.String,
  ack_seq: Schema.optionalKey(Schema.Unknown),
  charge_id: Schema.optionalKey(Schema.NullOr(Schema.String)),
  payment_intent_id: Schema.optionalKey(Schema.NullOr(Schema.String)),
  charge_key: Schema.optionalKey(Schema.Unknown),
  amount_received: Schema.optionalKey(Schema.Int),
  error: Schema.optionalKey(Schema.Unknown)
})
const decodeReply = Schema.decodeUnknownResult(Schema.fromJsonString(PlainReply))
const decodeError = Schema.decodeUnknownResult(PlainError)
const isChargeKey = Schema.is(ChargeKey)

/** What an answer belongs to. */
interface Asked {
  readonly id: string
  readonly chargeKey: ChargeKey
  readonly amountMinor: number
}

const seqOf = (id: string, { amountMinor, chargeKey }: ChargeRequest) => `${id} ${chargeKey} ${amountMinor}`

const askedOf = (seq: unknown): Asked | undefined => {
  const [id, chargeKey, amount] = typeof seq === "string" ? seq.split(" ") : []
  if (id === undefined || !isChargeKey(chargeKey) || !/^\d{1,15}$/.test(amount ?? "")) return undefined
  return { id, chargeKey, amountMinor: Number(amount) }
}

const encode = (id: string, request: ChargeRequest) => JSON.stringify({
  ...(request.namespace === defaultNamespace ? {} : { namespace: request.namespace }),
  customer_id: request.customerId,
  billing_period: request.billingPeriod,
  ...(request.item === undefined ? {} : { item: request.item }),
  ...(request.revision === undefined ? {} : { revision: request.revision }),
  amount_cents: request.amountMinor,
  currency: request.currency,
  stripe_customer_id: request.stripeCustomerId,
  ...(request.paymentMethod === undefined ? {} : { payment_method: request.paymentMethod }),
  idempotency_key: request.chargeKey,
  run_id: RunMark.of(request),
  seq: seqOf(id, request)
})

const unexpected = (chargeKey: ChargeKey, detail: string): ReplyOf<ChargeOutcome, SubmitError> =>
  Result.fail(new ChargeError({ reason: new UnexpectedAnswer({ operation: "a plain worker", detail: detail.slice(0, 500) }), chargeKey, requestId: null }))

/** A refusal by what kept a worker from charging; whatever does not say that nothing was charged leaves it unknown. */
const failureOf = (reply: typeof PlainReply.Type, { chargeKey }: Asked): ReplyOf<ChargeOutcome, SubmitError> => {
  const read = decodeError(reply.error)
  if (Result.isFailure(read)) return unexpected(chargeKey, typeof reply.error === "string" ? reply.error : `status ${reply.status}`)
  const { decline_code, message, reason, retryable, type } = read.success
  const detail = message ?? reason ?? reply.status
  const common = { chargeKey, alreadySettled: false, detail }
  const paymentIntentId = reply.payment_intent_id ?? null
  switch (type) {
    case "Declined":
      return Result.succeed(new Declined({ ...common, paymentIntentId, code: reason ?? "card_declined", declineCode: decline_code ?? null, adviceCode: null, declinedChargeId: null }))
    case "Rejected":
      return Result.succeed(new Rejected({ ...common, code: reason ?? "rejected" }))
    case "Canceled":
      return Result.succeed(new Canceled({ ...common, paymentIntentId }))
    case "RequiresAction":
      return paymentIntentId === null
        ? unexpected(chargeKey, detail)
        : Result.succeed(new RequiresAction({ ...common, paymentIntentId, declinedChargeId: null }))
    case "TransportError": {
      if (reason === "Backpressure") return Result.fail(new TransportError({ reason: new Backpressure({ endpoint: "a plain worker", window: 0 }), chargeKey }))
      if (reason === "MalformedMessage") return Result.fail(new TransportError({ reason: new MalformedMessage({ detail, field: null }), chargeKey }))
      if (reason === "PeerUnreachable" && retryable === true) {
        return Result.fail(new TransportError({ reason: new PeerUnreachable({ endpoint: "a plain worker", detail }), chargeKey }))
      }
      return unexpected(chargeKey, detail)
    }
    default:
      return unexpected(chargeKey, detail)
  }
}

const outcomeOf = (reply: typeof PlainReply.Type, asked: Asked): ReplyOf<ChargeOutcome, SubmitError> => {
  const { amountMinor, chargeKey } = asked
  const id = reply.payment_intent_id ?? reply.charge_id
  switch (reply.status) {
    case "ok":
    case "already_processed":
      return id == null ? unexpected(chargeKey, "paid, but without an id") : Result.succeed(checkedSucceeded({
        chargeKey,
        alreadySettled: reply.status !== "ok",
        paymentIntentId: id,
        chargeId: reply.charge_id ?? null,
        amountReceivedMinor: reply.amount_received ?? amountMinor
      }))
    case "processing":
      return id == null ? unexpected(chargeKey, "processing, but without an id") : Result.succeed(new Processing({ chargeKey, alreadySettled: false, paymentIntentId: id }))
    default:
      return failureOf(reply, asked)
  }
}

const malformed = (detail: string) => Result.fail(new TransportError({ reason: new MalformedMessage({ detail: detail.slice(0, 500), field: null }), chargeKey: null }))

/** Reads and writes single plain messages. A frame must have one request: clients that use it join none. */
export const plainClientWire: ClientWire<ChargeRequest, ChargeOutcome, SubmitError> = {
  encodeRequests: (_client, items) => items.map(({ id, request }) => encode(id, request)).join("\n"),
  decodeReplies: (text, questions) => {
    const read = decodeReply(text)
    if (Result.isFailure(read)) return malformed(read.failure.message)
    const reply = read.success
    const only = questions?.length === 1 ? questions[0] : undefined
    const asked = reply.ack_seq === undefined && only !== undefined
      ? { id: only.id, chargeKey: only.request.chargeKey, amountMinor: only.request.amountMinor }
      : askedOf(reply.ack_seq)
    if (asked === undefined) return malformed("an answer without the seq of its request as ack_seq")
    // An old worker need not name a charge; one that names another has answered something else.
    return isChargeKey(reply.charge_key) && reply.charge_key !== asked.chargeKey
      ? malformed("an answer to another charge")
      : Result.succeed([{ id: asked.id, reply: outcomeOf(reply, asked) }])
  }
}
