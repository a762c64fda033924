/**
 * The gateway's steps on the one-call API, `POST /v1/charges`.
 *
 * Nothing exists at Stripe before the call that moves the money, so that `create` makes no request: it names a reservation
 * in the ledger, `charges:<charge key>:<second>`, from which on the customer's charges are looked through. That name is
 * stored before the call, so that the ledger never takes a charge for untouched that may have been paid.
 *
 * Between a repeat and a second payment stand the idempotency key while Stripe keeps it, and the look-up by metadata after
 * that. What they cannot close is in `docs/stripe.md`.
 */
import { CardDeclined, type ChargeErrorReason, type ChargeGateway, type GatewayOrder, type GatewayPayment, UnexpectedAnswer } from "@purser/core"
import { Clock, Effect } from "effect"
import type { StripeAnswer, StripeClient } from "../StripeClient.ts"
import { type Ask, askFor } from "./ask.ts"
import { attemptOf, Charge, toPayment } from "./chargeAnswers.ts"
import { customerMethod } from "./customerMethod.ts"
import { best } from "./findIntent.ts"
import { listOurs } from "./listOurs.ts"
import { metadataOf } from "./metadata.ts"
import { probeWith } from "./probe.ts"
import { problemOf, reasonOf } from "./refusal.ts"

const prefix = "charges:"

/** Whether an id of the ledger names a charge of this gateway. */
export const isChargeId = (id: string): boolean => id.startsWith(prefix)

/** Charges of cards, and of bank accounts. */
const isStanding = (id: string) => id.startsWith("ch_") || id.startsWith("py_")

/** The charge key itself, as existing fleets send it; only a new attempt after a recorded decline gets another. */
const keyOf = (order: GatewayOrder, attempt: number) =>
  `${order.chargeKey}${order.generation > 1 ? `:g${order.generation}` : ""}${attempt > 1 ? `:a${attempt}` : ""}`

const sinceOf = (id: string): number | undefined => {
  const [, seconds] = /^charges:[0-9a-f]{32}:(\d{1,12})$/.exec(id) ?? []
  return seconds === undefined ? undefined : Number(seconds) * 1000
}

const isNoSuchCustomer = (reason: ChargeErrorReason) =>
  reason._tag === "InvalidRequest" && reason.code === "resource_missing" && reason.param === "customer"

const unsent = (order: GatewayOrder, id: string): GatewayPayment => ({
  id,
  status: "unconfirmed",
  amountMinor: order.request.amountMinor,
  amountReceivedMinor: 0,
  currency: order.request.currency,
  stripeCustomerId: order.request.stripeCustomerId,
  chargeKey: order.chargeKey,
  generation: order.generation,
  chargeId: null,
  decline: null
})

/** The gateway on a client. */
export const makeCharges = (client: StripeClient["Service"]): ChargeGateway["Service"] => {
  const nameAt = (order: Pick<GatewayOrder, "chargeKey">, ms: number) => `${prefix}${order.chargeKey}:${Math.floor(ms / 1000)}`

  /** Ours among the customer's charges: a paid one of any attempt, else the answer to this attempt. */
  const search = Effect.fnUntraced(function*(order: GatewayOrder, id: string, sinceMs: number) {
    const ask = askFor(client, order)
    const ours = yield* listOurs(client, order, sinceMs, (stripe, window) =>
      stripe.charges.list({ customer: order.request.stripeCustomerId, ...window }))
    const found: Array<GatewayPayment> = []
    for (const { json, requestId } of ours) {
      const charge = yield* ask.read("find", Charge, json, requestId)
      if (charge.status === "failed" && attemptOf(charge) !== String(order.attempt ?? 1)) continue
      found.push(toPayment(id, order, charge, client.scrub))
    }
    return best(found)
  })

  const retrieve = Effect.fnUntraced(function*(order: GatewayOrder, id: string) {
    const sinceMs = sinceOf(id)
    if (sinceMs === undefined) {
      return yield* askFor(client, order).fail(
        new UnexpectedAnswer({ operation: "retrieve", detail: `${client.scrub(id)} was not made by the charges gateway` }),
        null
      )
    }
    return (yield* search(order, id, sinceMs)) ?? unsent(order, id)
  })

  const paid = (ask: Ask, order: GatewayOrder, id: string, answer: StripeAnswer) =>
    Effect.map(ask.read("confirm", Charge, answer.json, answer.requestId), (charge) => toPayment(id, order, charge, client.scrub))

  const confirm: ChargeGateway["Service"]["confirm"] = Effect.fnUntraced(function*(given, { attempt, id, paymentMethod }) {
    const order = { ...given, attempt }
    const ask = askFor(client, order)
    const answer = yield* ask.call("charge", (stripe) =>
      stripe.charges.create({
        amount: order.request.amountMinor,
        currency: order.request.currency,
        customer: order.request.stripeCustomerId,
        source: paymentMethod,
        metadata: { ...metadataOf(order), attempt: String(attempt) }
      }, { idempotencyKey: keyOf(order, attempt) }))
    if (answer.status === 200) return yield* paid(ask, order, id, answer)
    const problem = problemOf(answer)
    const reason = reasonOf("charge", answer, client.scrub)
    if (problem === undefined || (answer.status !== 402 && reason._tag !== "InvalidRequest")) return yield* ask.fail(reason, answer.requestId)
    // Parameters are checked before the key is: a customer who was deleted after an earlier call of ours had succeeded is
    // refused like one who never was. So the list is asked before a refusal is believed.
    const payment = yield* retrieve(order, id).pipe(
      Effect.catchTag("ChargeError", (error) =>
        error.outcome === "unknown"
          ? Effect.fail(error)
          // Who is not there has no charges to list either; a charge that is taken up again was refused the list before.
          : isNoSuchCustomer(reason) && isNoSuchCustomer(error.reason)
          ? ask.fail(reason, answer.requestId)
          : ask.fail(new UnexpectedAnswer({ operation: "charge", detail: `refused, and charges cannot be listed: ${error.message}` }), error.requestId))
    )
    if (payment.status === "succeeded" || payment.status === "processing") return payment
    if (answer.status !== 402) return yield* ask.fail(reason, answer.requestId)
    const detail = client.scrub(problem.message ?? "")
    const code = problem.code ?? problem.type
    // A bank that wants the customer declines here: this API has no object that the customer could authenticate.
    return yield* ask.fail(new CardDeclined({
      code, declineCode: problem.decline_code ?? null, adviceCode: problem.advice_code ?? null, declinedChargeId: problem.charge ?? null, detail
    }), answer.requestId)
  })

  return {
    name: "charges",
    isOneCall: isChargeId,
    nameOf: (chargeKey, { createdMs, id }) => isStanding(id) ? nameAt({ chargeKey }, createdMs) : undefined,
    probe: probeWith(client),
    unsent: (order, nowMs) => unsent(order, nameAt(order, nowMs)),
    create: (order) => Effect.map(Clock.currentTimeMillis, (ms) => unsent(order, nameAt(order, ms))),
    find: (order, sinceMs) => search(order, nameAt(order, sinceMs), sinceMs),
    retrieve,
    confirm,
    // Nothing is there to be given up; what was paid stays paid.
    cancel: (order, id) => Effect.map(retrieve(order, id), (payment) => payment.status === "unconfirmed" ? { ...payment, status: "canceled" } : payment),
    defaultPaymentMethod: (order) => customerMethod(client, order, "source")
  }
}
