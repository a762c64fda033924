/**
 * One call on behalf of one order: an answer that was read, or a `ChargeError` that names the charge.
 */
import {
  ChargeError, type ChargeErrorReason, type GatewayOrder, GatewayTimeout, GatewayUnavailable, InvalidRequest, UnexpectedAnswer
} from "@purser/core"
import { Effect, Result, Schema } from "effect"
import type { Stripe } from "stripe"
import { accountOf } from "../ConnectAccount.ts"
import type { StripeCallError } from "../StripeCallError.ts"
import type { StripeAnswer, StripeClient } from "../StripeClient.ts"

/** An order's view of the client. */
export interface Ask {
  readonly call: (operation: string, use: (stripe: Stripe) => PromiseLike<unknown>) => Effect.Effect<StripeAnswer, ChargeError>
  readonly fail: (reason: ChargeErrorReason, requestId: string | null) => Effect.Effect<never, ChargeError>
  /** Reads a part of an answer, or fails with `UnexpectedAnswer`. */
  readonly read: <A>(
    operation: string,
    schema: Schema.ConstraintDecoder<A>,
    input: unknown,
    requestId: string | null
  ) => Effect.Effect<A, ChargeError>
}

/** What a call without an answer means for the money. */
export const reasonOf = (error: StripeCallError): ChargeErrorReason => {
  const { operation, reason } = error
  switch (reason._tag) {
    case "CallTimeout":
      return new GatewayTimeout({ operation, timeoutMs: reason.timeoutMs })
    case "ConnectionFailed":
      return new GatewayUnavailable({ operation, status: reason.status, replayed: false, detail: reason.detail })
    case "NotSent":
      return new InvalidRequest({ param: null, code: "not_sent", detail: reason.detail })
  }
}

/** On whose behalf: a charge, or a refund, which knows the namespace of its charge alone. */
export type Whose = Pick<GatewayOrder, "chargeKey"> & { readonly request?: GatewayOrder["request"]; readonly namespace?: string }

/** The client for one order. */
export const askFor = (client: StripeClient["Service"], order: Whose): Ask => {
  const namespace = order.request?.namespace ?? order.namespace
  const options = { customer: order.request?.stripeCustomerId, account: namespace === undefined ? undefined : accountOf(namespace), chargeKey: order.chargeKey }
  const fail: Ask["fail"] = (reason, requestId) => Effect.fail(new ChargeError({ reason, chargeKey: order.chargeKey, requestId }))
  return {
    fail,
    call: (operation, use) =>
      Effect.catchTag(client.call(operation, use, options), "StripeCallError", (error) => fail(reasonOf(error), error.requestId)),
    read: (operation, schema, input, requestId) => {
      const result = Schema.decodeUnknownResult(schema)(input)
      if (Result.isSuccess(result)) return Effect.succeed(result.success)
      // The issue tells paths and expectations; the values, client secrets among them, stay out of it.
      return fail(new UnexpectedAnswer({ operation, detail: client.scrub(result.failure.message) }), requestId)
    }
  }
}
