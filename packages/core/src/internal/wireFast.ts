/**
 * The usual bodies of the wire, read and written without a schema: it takes a third of what a request costs. Whatever is
 * not as usual gives `undefined` and is left to the schemas, so that every refusal and every rare field is theirs alone. A
 * property test holds that what is read here is what the schemas read.
 */
import { type PeriodOptions, parsePeriod } from "../BillingPeriod.ts"
import { type ChargeKey, defaultNamespace } from "../ChargeKey.ts"
import { checkedSucceeded, type Succeeded } from "../ChargeOutcome.ts"
import { type ChargeRequest, checkedRequest } from "../ChargeRequest.ts"
import { currencyRule, parseCurrency } from "../Currency.ts"
import { Result } from "effect"
import { remembered } from "./remembered.ts"
import { areUsual } from "./usualFields.ts"

/** Makes a reader of request bodies; it remembers the spellings of periods, of which a run has few. */
export const makeRequestReader = (options: PeriodOptions) => {
  const periodOf = remembered(256, (text) => Result.getOrUndefined(parsePeriod(text, options)))
  return (body: Record<string, unknown>): ChargeRequest | undefined => {
    const { allow_future, amount_minor, billing_period, currency, customer_id, item, namespace = defaultNamespace, payment_method, revision, sender_key, stripe_customer_id } = body
    if (revision !== undefined || typeof billing_period !== "string" || typeof currency !== "string") return undefined
    const billingPeriod = periodOf(billing_period)
    const code = parseCurrency(currency)
    if (billingPeriod === undefined || code === undefined) return undefined
    const fields = {
      namespace,
      customerId: customer_id,
      billingPeriod,
      item,
      amountMinor: amount_minor,
      currency: code,
      stripeCustomerId: stripe_customer_id,
      paymentMethod: payment_method,
      senderKey: sender_key,
      allowFuture: allow_future
    }
    if (!areUsual(fields)) return undefined
    const { minimumMinor, stepMinor } = currencyRule(code)
    return fields.amountMinor < minimumMinor || fields.amountMinor % stepMinor !== 0 ? undefined : checkedRequest(fields)
  }
}

const chargeKey = /^[0-9a-f]{32}$/
const isChargeKey = (value: unknown): value is ChargeKey => typeof value === "string" && chargeKey.test(value)

/** Reads the body of an answer that says paid. */
export const readSucceeded = (body: unknown): Succeeded | undefined => {
  if (typeof body !== "object" || body === null || !("outcome" in body)) return undefined
  const { outcome } = body
  if (typeof outcome !== "object" || outcome === null || !("_tag" in outcome) || outcome._tag !== "Succeeded") return undefined
  const { alreadySettled, amountReceivedMinor, chargeId, chargeKey, paymentIntentId }: Partial<Record<keyof Succeeded, unknown>> = outcome
  if (!isChargeKey(chargeKey) || typeof alreadySettled !== "boolean" || typeof paymentIntentId !== "string") return undefined
  if (chargeId !== null && typeof chargeId !== "string" || !Number.isSafeInteger(amountReceivedMinor)) return undefined
  return checkedSucceeded({ chargeKey, alreadySettled, paymentIntentId, chargeId, amountReceivedMinor: Number(amountReceivedMinor) })
}

/** Writes the outcome of an answer that says paid. */
export const writeSucceeded = ({ alreadySettled, amountReceivedMinor, chargeId, chargeKey, paymentIntentId }: Succeeded) => ({
  _tag: "Succeeded" as const,
  chargeKey,
  alreadySettled,
  paymentIntentId,
  chargeId,
  amountReceivedMinor
})
