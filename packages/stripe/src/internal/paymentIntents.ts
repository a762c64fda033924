/**
 * The gateway's steps on PaymentIntents: create unconfirmed, confirm, look up.
 *
 * No payment method goes into `create`: the customer's default one may change between two tries, and the same key with
 * other parameters is refused. It travels with `confirm`, which the ledger freezes per attempt.
 */
import {
  AuthenticationRequired, CardDeclined, type ChargeError, type ChargeGateway, type GatewayOrder, type GatewayPayment,
  UnexpectedAnswer
} from "@purser/core"
import { Effect } from "effect"
import type { Stripe } from "stripe"
import type { StripeAnswer, StripeClient } from "../StripeClient.ts"
import { type Ask, askFor } from "./ask.ts"
import { PaymentIntent, toPayment, usualIntent } from "./answers.ts"
import { customerMethod } from "./customerMethod.ts"
import { findIntent } from "./findIntent.ts"
import { metadataOf } from "./metadata.ts"
import { probeWith } from "./probe.ts"
import { problemOf, reasonOf } from "./refusal.ts"
import { shaped, type Values } from "./shapes.ts"
import { stepKey } from "./stepKey.ts"

/** Settings of the gateway. */
export interface PaymentIntentOptions {
  /** Sent as `allowed_payment_method_types` (since `endive` the API refuses `payment_method_types`); default `card` alone. */
  readonly paymentMethodTypes: ReadonlyArray<string>
}

/** The gateway on a client. */
export const makePaymentIntents = (
  client: StripeClient["Service"],
  options: PaymentIntentOptions
): ChargeGateway["Service"] => {
  const refused = (ask: Ask, operation: string, answer: StripeAnswer) =>
    ask.fail(reasonOf(operation, answer, client.scrub), answer.requestId)

  const paymentOf = (ask: Ask, operation: string, intent: PaymentIntent, id: string | undefined, requestId: string | null) =>
    id === undefined || intent.id === id
      ? Effect.succeed(toPayment(intent, client.scrub))
      : ask.fail(new UnexpectedAnswer({ operation, detail: `asked for ${id}, got ${client.scrub(intent.id)}` }), requestId)

  const paymentIn = (ask: Ask, operation: string, input: unknown, id: string | undefined, requestId: string | null) => {
    const usual = usualIntent(input)
    return usual === undefined
      ? Effect.flatMap(ask.read(operation, PaymentIntent, input, requestId), (intent) => paymentOf(ask, operation, intent, id, requestId))
      : paymentOf(ask, operation, usual, id, requestId)
  }

  const intentCall = (ask: Ask, operation: string, id: string | undefined, use: (stripe: Stripe) => PromiseLike<unknown>) =>
    Effect.flatMap(ask.call(operation, use), (answer) =>
      answer.status === 200 ? paymentIn(ask, operation, answer.json, id, answer.requestId) : refused(ask, operation, answer))

  const retrieveAs = (ask: Ask, operation: string, id: string) =>
    intentCall(ask, operation, id, (stripe) => stripe.paymentIntents.retrieve(id))

  /**
   * The object after a refusal: from the error body, else read anew. That it could not be read proves nothing about the
   * money, whatever the reason: such an error is turned into an unknown one.
   */
  const evidence = (ask: Ask, operation: string, id: string, answer: StripeAnswer): Effect.Effect<GatewayPayment, ChargeError> => {
    // A stored answer shows the object as it was then, and it may have been paid since.
    const inBody = answer.replayed ? undefined : problemOf(answer)?.payment_intent
    if (inBody !== undefined && inBody !== null) return paymentIn(ask, operation, inBody, id, answer.requestId)
    return retrieveAs(ask, `${operation}.evidence`, id).pipe(
      Effect.catchTag("ChargeError", (error) =>
        error.outcome === "unknown"
          ? Effect.fail(error)
          : ask.fail(new UnexpectedAnswer({ operation, detail: `refused, and the object cannot be read: ${error.message}` }), error.requestId))
    )
  }

  type CreateValues = Values & { readonly key: string; readonly amount: number; readonly currency: string; readonly customer: string }
  const askToCreate = (stripe: Stripe, { amount, currency, customer, key, ...metadata }: CreateValues) =>
    stripe.paymentIntents.create({ amount, currency, customer, allowed_payment_method_types: [...options.paymentMethodTypes], metadata }, { idempotencyKey: key })

  const create = (order: GatewayOrder, keySuffix: string) => {
    const { amountMinor, currency, stripeCustomerId } = order.request
    return intentCall(askFor(client, order), "create", undefined, shaped(askToCreate, {
      key: stepKey(order, "create", keySuffix), amount: amountMinor, currency, customer: stripeCustomerId, ...metadataOf(order)
    }))
  }

  const askToConfirm = (stripe: Stripe, { id, key, method }: { readonly id: string; readonly key: string; readonly method: string }) =>
    stripe.paymentIntents.confirm(id, { payment_method: method, off_session: true }, { idempotencyKey: key })

  const confirm: ChargeGateway["Service"]["confirm"] = (order, { attempt, id, keySuffix, paymentMethod }) => {
    const ask = askFor(client, order)
    const answer = ask.call("confirm", shaped(askToConfirm, { id, method: paymentMethod, key: stepKey(order, `confirm:${attempt}`, keySuffix) }))
    return Effect.flatMap(answer, (answer) =>
      answer.status === 200 ? paymentIn(ask, "confirm", answer.json, id, answer.requestId) : notConfirmed(ask, id, answer))
  }

  const notConfirmed = Effect.fnUntraced(function*(ask: Ask, id: string, answer: StripeAnswer): Effect.fn.Return<GatewayPayment, ChargeError> {
    const problem = problemOf(answer)
    const reason = reasonOf("confirm", answer, client.scrub)
    // A refusal of this request is no proof about an earlier one: a method that was detached since the first confirm
    // succeeded is refused before Stripe looks at the object's state. So the object itself is asked.
    if (problem === undefined || (answer.status !== 402 && reason._tag !== "InvalidRequest")) {
      return yield* ask.fail(reason, answer.requestId)
    }
    const payment = yield* evidence(ask, "confirm", id, answer)
    if (payment.status === "succeeded" || payment.status === "processing") return payment
    if (answer.status === 402) {
      const detail = client.scrub(problem.message ?? "")
      const code = problem.code ?? problem.type
      const declinedChargeId = problem.charge ?? null
      if (code === "authentication_required" || problem.decline_code === "authentication_required") {
        return yield* ask.fail(new AuthenticationRequired({ detail, declinedChargeId }), answer.requestId)
      }
      if (payment.status === "requires_action") return payment
      return yield* ask.fail(new CardDeclined({
        code, declineCode: problem.decline_code ?? null, adviceCode: problem.advice_code ?? null, declinedChargeId, detail
      }), answer.requestId)
    }
    const settled = payment.status === "requires_action" || payment.status === "canceled"
    return settled && problem.code === "payment_intent_unexpected_state" ? payment : yield* ask.fail(reason, answer.requestId)
  })

  const cancel = Effect.fnUntraced(function*(order: GatewayOrder, id: string) {
    const ask = askFor(client, order)
    // No key of ours: cancelling twice is harmless, and a stored 500 must not stand in the way of the next try.
    const answer = yield* ask.call("cancel", (stripe) => stripe.paymentIntents.cancel(id))
    if (answer.status === 200) return yield* paymentIn(ask, "cancel", answer.json, id, answer.requestId)
    if (problemOf(answer)?.code !== "payment_intent_unexpected_state") return yield* refused(ask, "cancel", answer)
    return yield* evidence(ask, "cancel", id, answer)
  })

  return {
    name: "payment_intents",
    probe: probeWith(client),
    create,
    confirm,
    cancel,
    defaultPaymentMethod: (order) => customerMethod(client, order, "payment_method"),
    find: (order, sinceMs) => findIntent(client, order, sinceMs),
    retrieve: (order, id) => retrieveAs(askFor(client, order), "retrieve", id)
  }
}
