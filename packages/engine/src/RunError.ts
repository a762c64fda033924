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

/** A period of the rows is not over, and nobody has allowed it by name. */
export class PeriodNotOver extends Schema.TaggedError<PeriodNotOver>(id("PeriodNotOver"))("PeriodNotOver", {
  billingPeriod: Schema.String
}) {
  override get message() {
    return `${this.billingPeriod} is not over; a run bills it only when it is allowed by name`
  }
}

/** Rows that come late for a run are among its own with another amount, currency, Stripe customer or payment method. */
export class TermsChanged extends Schema.TaggedError<TermsChanged>(id("TermsChanged"))("TermsChanged", {
  source: Schema.String,
  rows: Schema.Int,
  line: Schema.Int
}) {
  override get message() {
    const changed = this.rows === 1 ? "1 has" : `${this.rows} have`
    return `of the rows for "${this.source}", ${changed} other terms than the run has (the first at line ${this.line}): nothing was planned; what is to be charged besides needs another item, and money back is a refund`
  }
}

/** Another command that lives has a run of the same input in hand. */
export class SourceInHand extends Schema.TaggedError<SourceInHand>(id("SourceInHand"))("SourceInHand", {
  source: Schema.String,
  run: Schema.String,
  runner: Schema.NullOr(Schema.String)
}) {
  override get message() {
    return `${this.source} is in hand already: run ${this.run}${this.runner === null ? "" : ` by ${this.runner}`}. Nothing was sent by this command; purser runs watch ${this.run} follows the other`
  }
}

/** A total was expected for a period and currency that no row has, or rows have one for which none was expected and no cap is open. */
export class TotalUnexpected extends Schema.TaggedError<TotalUnexpected>(id("TotalUnexpected"))("TotalUnexpected", {
  billingPeriod: Schema.String,
  currency: Schema.String,
  isInRows: Schema.Boolean
}) {
  override get message() {
    const scope = `${this.billingPeriod} ${this.currency}`
    return this.isInRows ? `no total was expected for ${scope}, and no cap is open for it` : `a total was expected for ${scope}, and no row is of it`
  }
}

/** The source of the rows failed, or what it was told does not suit it. */
export class SourceFailed extends Schema.TaggedError<SourceFailed>(id("SourceFailed"))("SourceFailed", {
  definition: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `the source of "${this.definition}" failed: ${this.detail}`
  }
}

/** A stage failed for as often as its policy lets it try. */
export class StageFailed extends Schema.TaggedError<StageFailed>(id("StageFailed"))("StageFailed", {
  stage: Schema.String,
  chunk: Schema.Int,
  detail: Schema.String
}) {
  override get message() {
    return `stage "${this.stage}" failed on chunk ${this.chunk}: ${this.detail}`
  }
}

/** The process that has the run in work does not know how its rows are made. */
export class UnknownDefinition extends Schema.TaggedError<UnknownDefinition>(id("UnknownDefinition"))("UnknownDefinition", {
  definition: Schema.String
}) {
  override get message() {
    return `this runner has no definition "${this.definition}"; all runners of a database need the same ones`
  }
}

/** No run has this name or id. */
export class UnknownRun extends Schema.TaggedError<UnknownRun>(id("UnknownRun"))("UnknownRun", { run: Schema.String }) {
  override get message() {
    return `no run is called "${this.run}"`
  }
}

/** The run's state does not allow what was asked for. */
export class RunStateRefused extends Schema.TaggedError<RunStateRefused>(id("RunStateRefused"))("RunStateRefused", {
  run: Schema.String,
  state: Schema.String,
  act: Schema.String
}) {
  override get message() {
    return `run "${this.run}" is ${this.state}: it cannot be ${this.act}`
  }
}

/** A run was refused; nothing was sent to the processor. */
export class RunError extends Schema.TaggedError<RunError>("@purser/engine/RunError")("RunError", {
  reason: Schema.Union([
    DuplicateIdentities, TotalOverCap, NothingToCharge, PeriodNotOver, SourceInHand, TermsChanged, TotalUnexpected, SourceFailed, StageFailed, UnknownDefinition, UnknownRun, RunStateRefused
  ])
}) {
  override get message() {
    return this.reason.message
  }
  get isRetryable() {
    return false
  }
  /** What was asked for was refused as a whole; charges that a run has made before stand as they stood. */
  get outcome() {
    return "not_charged" as const
  }
}
