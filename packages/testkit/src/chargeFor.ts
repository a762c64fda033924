/** A valid charge request in one line, for tests. */
import { AmountMinor, ChargeRequest, Currency, defaultNamespace, parsePeriod } from "@purser/core"
import { Result, Schema } from "effect"

/** What a test may want to be different. */
export interface ChargeForOptions {
  readonly namespace?: string
  readonly item?: string
  readonly revision?: number
  readonly amountMinor?: number
  readonly currency?: string
  readonly stripeCustomerId?: string
  /** `null` leaves the method to the customer's default. */
  readonly paymentMethod?: string | null
  readonly senderKey?: string
  /** Allowed unless a test says `false`. */
  readonly allowFuture?: boolean
}

const amount = Schema.decodeSync(AmountMinor)
const currency = Schema.decodeSync(Currency)

/** 10.00 usd of a customer for a period (in any accepted spelling), paid with a card that succeeds. */
export const chargeFor = (customerId: string, period: string, options: ChargeForOptions = {}): ChargeRequest =>
  new ChargeRequest({
    namespace: options.namespace ?? defaultNamespace,
    customerId,
    billingPeriod: Result.getOrThrow(parsePeriod(period)),
    ...(options.item === undefined ? {} : { item: options.item }),
    ...(options.revision === undefined ? {} : { revision: options.revision }),
    amountMinor: amount(options.amountMinor ?? 1000),
    currency: currency(options.currency ?? "usd"),
    stripeCustomerId: options.stripeCustomerId ?? `cus_${customerId}`,
    ...(options.paymentMethod === null ? {} : { paymentMethod: options.paymentMethod ?? "pm_card_visa" }),
    ...(options.senderKey === undefined ? {} : { senderKey: options.senderKey }),
    // The test clock starts in 1970, before every period.
    ...(options.allowFuture === false ? {} : { allowFuture: true })
  })
