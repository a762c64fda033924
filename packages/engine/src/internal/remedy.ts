/**
 * What evidence allows to be done about a difference, by the ledger's own steps: a paid object is taken into the row that
 * it belongs to, and an unpaid one that no row names is given up. Nothing here asks anybody for money.
 */
import {
  type AccountPayment, type ChargeError, ChargeGateway, type ChargeKey, type ChargeRequest, type ChargeRecord, Ledger, type LedgerError, type PipelineError, readRequest
} from "@purser/core"
import { Effect, Result } from "effect"
import { ChargePipeline } from "../ChargePipeline.ts"
import type { PipelineSettings } from "../PipelineOptions.ts"

/** The request behind an object, if its metadata tell the whole identity and the key is that identity's. */
export const requestOf = (object: AccountPayment, method: "named" | "default"): ChargeRequest | undefined => {
  const { identity } = object
  if (identity === null || identity.revision === null || identity.customerId === null || identity.billingPeriod === null || identity.namespace === null) return undefined
  const request = Result.getOrUndefined(readRequest({
    namespace: identity.namespace,
    customerId: identity.customerId,
    billingPeriod: identity.billingPeriod,
    ...(identity.item === null ? {} : { item: identity.item }),
    ...(identity.revision === 0 ? {} : { revision: identity.revision }),
    amountMinor: object.amountMinor,
    currency: object.currency,
    stripeCustomerId: object.stripeCustomerId,
    ...(method === "named" && object.paymentMethod !== null ? { paymentMethod: object.paymentMethod } : {}),
    allowFuture: true
  }))
  return request?.chargeKey === identity.chargeKey ? request : undefined
}

/** Why the request behind an object cannot be told; `undefined` when it can. */
export const identityProblem = (object: AccountPayment): string | undefined => {
  const { identity } = object
  const missing = Object.entries({ customer_id: identity?.customerId, billing_period: identity?.billingPeriod, namespace: identity?.namespace, revision: identity?.revision })
    .filter(([, value]) => value === null || value === undefined || value === "").map(([name]) => name)
  if (missing.length > 0) return `its metadata do not tell ${missing.join(", ")}`
  return requestOf(object, "named") === undefined ? "its charge_key is not that of the identity and terms in its metadata" : undefined
}

/** Adoption and cancellation over the services of the app. */
export const makeRemedy = Effect.fnUntraced(function*(worker: string, { retry }: PipelineSettings) {
  const ledger = yield* Ledger
  const gateway = yield* ChargeGateway
  const pipeline = yield* ChargePipeline

  /** By which id the ledger knows it; `undefined` where the gateways at hand could not read it again. */
  const nameOf = (chargeKey: ChargeKey, object: AccountPayment): string | undefined =>
    object.id === object.chargeId ? gateway.nameOf?.(chargeKey, object) : object.id

  /** Ties a paid object to a row that names none, and records it. False when somebody else holds the row. */
  const adopt = Effect.fnUntraced(function*(request: ChargeRequest, object: AccountPayment): Effect.fn.Return<boolean, PipelineError> {
    const paymentIntentId = nameOf(request.chargeKey, object)
    if (paymentIntentId === undefined) return false
    const charge = yield* ledger.adopt({ request, paymentIntentId, paymentMethod: object.paymentMethod, worker })
    if (charge === undefined) return false
    // It is one that settles later: whatever the object says now is recorded, and nobody is asked for money.
    const outcome = yield* pipeline.resume(charge)
    return outcome._tag === "Succeeded"
  })

  /** With patience, since a refusal for the rate of calls is no end of a run; each try looks at the row anew. */
  const patiently = (act: Effect.Effect<boolean, ChargeError | LedgerError>) => Effect.retry(act, { while: (error) => error.isRetryable, schedule: retry })

  /** Gives an unpaid object up, unless the row has come to name it. */
  const cancel = Effect.fnUntraced(function*(record: ChargeRecord, object: AccountPayment): Effect.fn.Return<boolean, ChargeError | LedgerError> {
    const now = yield* ledger.find(record.chargeKey)
    if (now === undefined || now.paymentIntentId === object.id || (now.paymentIntentId === null && (now.state === "planned" || now.state === "claimed"))) {
      return false
    }
    const { attempt, chargeKey, generation, request } = now
    return (yield* gateway.cancel({ chargeKey, request, generation, attempt }, object.id)).status === "canceled"
  }, patiently)
  /** Gives up an unpaid object of an identity that the ledger does not know, unless it has come to know it. */
  const giveUp = Effect.fnUntraced(function*(request: ChargeRequest, object: AccountPayment): Effect.fn.Return<boolean, ChargeError | LedgerError> {
    const { chargeKey } = request
    if ((yield* ledger.find(chargeKey)) !== undefined) return false
    const at = { chargeKey, request, generation: object.identity?.generation ?? 0, attempt: 1 }
    return (yield* gateway.cancel(at, object.id)).status === "canceled"
  }, patiently)
  return { adopt, cancel, giveUp, nameOf }
})

/** A row that is held, or a step that lost its lease, is nothing to worry about: the holder will see for itself. */
export const isBusy = (error: PipelineError): error is LedgerError =>
  error.reason._tag === "LeaseLost" || error.reason._tag === "ChargeInProgress"
