/** Why a billing run is refused before anything is charged. */
import { Currency, Money } from "@purser/core"
import { Schema } from "effect"

const id = (name: string) => `@purser/engine/RunError/${name}`

/** Two or more rows have one identity; both are named, none is charged. */
export class DuplicateIdentities extends Schema.TaggedError<DuplicateIdentities>(id("DuplicateIdentities"))("DuplicateIdentities", {
  duplicates: Schema.Array(Schema.Struct({
    customerId: Schema.String,
    billingPeriod: Schema.String,
    item: Schema.NullOr(Schema.String),
    lines: Schema.Array(Schema.Int)
  }))
}) {
  override get message() {
    const texts = this.duplicates.map((d) =>
      `lines ${d.lines.join(" and ")} are one charge: customer ${JSON.stringify(d.customerId)}, period ${d.billingPeriod}, ${
        d.item === null ? "no item" : `item ${JSON.stringify(d.item)}`
      }`
    )
    return `${texts.join("; ")}. Give rows that are different charges different items.`
  }
}

/** The input's total does not fit under the cap of its period and currency. Figures in minor units. */
export class TotalOverCap extends Schema.TaggedError<TotalOverCap>(id("TotalOverCap"))("TotalOverCap", {
  billingPeriod: Schema.String,
  currency: Currency,
  neededMinor: Schema.BigInt,
  reservedMinor: Schema.BigInt,
  capMinor: Schema.BigInt
}) {
  override get message() {
    const money = (amount: bigint) => Money.formatMinor(amount, this.currency)
    const taken = this.reservedMinor === 0n ? "" : `, of which ${money(this.reservedMinor)} are taken`
    return `the rows of ${this.billingPeriod} need ${money(this.neededMinor)} ${this.currency}, the cap is ${money(this.capMinor)}${taken}: nothing was charged`
  }
}

/** The input has no rows. */
export class NothingToCharge extends Schema.TaggedError<NothingToCharge>(id("NothingToCharge"))("NothingToCharge", {
  source: Schema.String
}) {
  override get message() {
    return `${this.source} holds nothing to charge`
  }
}

/** A run was refused; nothing was sent to the processor. */
export class RunError extends Schema.TaggedError<RunError>("@purser/engine/RunError")("RunError", {
  reason: Schema.Union([DuplicateIdentities, TotalOverCap, NothingToCharge])
}) {
  override get message() {
    return this.reason.message
  }
  get isRetryable() {
    return false
  }
}
