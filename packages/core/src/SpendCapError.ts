/** What the spend cap refuses or fails with. This try of the charge did not ask Stripe for money. */
import { Schema } from "effect"
import { ChargeKey } from "./ChargeKey.ts"
import { parseCurrency } from "./Currency.ts"
import { Money } from "./Money.ts"

const id = (name: string) => `@purser/core/SpendCapError/${name}`

const money = (minor: number, code: string): string => {
  const currency = parseCurrency(code)
  return currency === undefined ? `${minor} ${code}` : `${Money.formatMinor(minor, currency)} ${currency}`
}

/** The amount does not fit under the cap of its period and currency. All figures in minor units. */
export class CapExceeded extends Schema.TaggedError<CapExceeded>(id("CapExceeded"))("CapExceeded", {
  billingPeriod: Schema.String,
  currency: Schema.String,
  capMinor: Schema.Int,
  reservedMinor: Schema.Int,
  requestedMinor: Schema.Int
}) {
  override get message() {
    return `${money(this.requestedMinor, this.currency)} do not fit under the cap of ${money(this.capMinor, this.currency)} for ${this.billingPeriod}: ${
      money(this.reservedMinor, this.currency)
    } are taken`
  }
  get isRetryable() {
    return false
  }
}

/** No cap was opened for the period and currency: nothing is charged without one. */
export class CapMissing extends Schema.TaggedError<CapMissing>(id("CapMissing"))("CapMissing", {
  billingPeriod: Schema.String,
  currency: Schema.String
}) {
  override get message() {
    return `no cap is open for ${this.billingPeriod} ${this.currency}`
  }
  get isRetryable() {
    return false
  }
}

/** The period's cap was closed: the period takes no more charges. */
export class CapClosed extends Schema.TaggedError<CapClosed>(id("CapClosed"))("CapClosed", {
  billingPeriod: Schema.String,
  currency: Schema.String
}) {
  override get message() {
    return `the cap for ${this.billingPeriod} ${this.currency} is closed`
  }
  get isRetryable() {
    return false
  }
}

/** The cap is open already with other figures; changing it is an explicit act. */
export class CapAlreadyOpen extends Schema.TaggedError<CapAlreadyOpen>(id("CapAlreadyOpen"))("CapAlreadyOpen", {
  billingPeriod: Schema.String,
  currency: Schema.String,
  capMinor: Schema.Int,
  requestedMinor: Schema.Int
}) {
  override get message() {
    return `the cap for ${this.billingPeriod} is open at ${money(this.capMinor, this.currency)}, not ${money(this.requestedMinor, this.currency)}; raise it explicitly`
  }
  get isRetryable() {
    return false
  }
}

/** The cap's store did not answer. */
export class CapUnavailable extends Schema.TaggedError<CapUnavailable>(id("CapUnavailable"))("CapUnavailable", {
  operation: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `the spend cap is unavailable for ${this.operation}: ${this.detail}`
  }
  get isRetryable() {
    return true
  }
}

/** Everything the cap can fail with. */
export const SpendCapErrorReason = Schema.Union([CapExceeded, CapMissing, CapClosed, CapAlreadyOpen, CapUnavailable])
export type SpendCapErrorReason = typeof SpendCapErrorReason.Type

/** The cap's refusal or failure; `chargeKey` is null for calls about a whole period. */
export class SpendCapError extends Schema.TaggedError<SpendCapError>("@purser/core/SpendCapError")("SpendCapError", {
  reason: SpendCapErrorReason,
  chargeKey: Schema.NullOr(ChargeKey)
}) {
  override get message() {
    return this.reason.message
  }
  get isRetryable() {
    return this.reason.isRetryable
  }
  /** A refusal stops the charge before Stripe. When the cap's store is away, an earlier try of the same charge may have got through. */
  get outcome(): "not_charged" | "unknown" {
    return this.reason._tag === "CapUnavailable" ? "unknown" : "not_charged"
  }
}
