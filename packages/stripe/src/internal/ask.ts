/**
 * One call on behalf of one order: an answer that was read, or a `ChargeError` that names the charge.
 */
import {
  ChargeError, type ChargeErrorReason, type ChargeKey, type GatewayOrder, GatewayTimeout, GatewayUnavailable, InvalidRequest, UnexpectedAnswer
} from "@purser/core"
import { Effect, Result, Schema } from "effect"
import type { Stripe } from "stripe"
import { accountOf } from "../ConnectAccount.ts"
import type { StripeCallError } from "../StripeCallError.ts"
import type { CallOptions, StripeAnswer, StripeClient } from "../StripeClient.ts"

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

/** A class for the sake of calls that take long, as whatever else lives as long as a charge does. */
class AskForOrder implements Ask, CallOptions {
  readonly customer: string | undefined
  readonly account: string | undefined
  readonly chargeKey: ChargeKey
  private readonly client: StripeClient["Service"]

  constructor(client: StripeClient["Service"], { chargeKey, namespace, request }: Whose) {
    const of = request?.namespace ?? namespace
    this.client = client
    this.customer = request?.stripeCustomerId
    this.account = of === undefined ? undefined : accountOf(of)
    this.chargeKey = chargeKey
  }

  fail(reason: ChargeErrorReason, requestId: string | null): Effect.Effect<never, ChargeError> {
    return Effect.fail(new ChargeError({ reason, chargeKey: this.chargeKey, requestId }))
  }

  call(operation: string, use: (stripe: Stripe) => PromiseLike<unknown>): Effect.Effect<StripeAnswer, ChargeError> {
    return Effect.catch(this.client.call(operation, use, this), (error) => this.fail(reasonOf(error), error.requestId))
  }

  read<A>(operation: string, schema: Schema.ConstraintDecoder<A>, input: unknown, requestId: string | null): Effect.Effect<A, ChargeError> {
    const result = Schema.decodeUnknownResult(schema)(input)
    if (Result.isSuccess(result)) return Effect.succeed(result.success)
    // The issue tells paths and expectations; the values, client secrets among them, stay out of it.
    return this.fail(new UnexpectedAnswer({ operation, detail: this.client.scrub(result.failure.message) }), requestId)
  }
}

/** The client for one order. */
export const askFor = (client: StripeClient["Service"], order: Whose): Ask => new AskForOrder(client, order)
