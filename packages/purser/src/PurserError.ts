/**
 * What a call of the object for plain programs fails with: each a class with a `_tag`, a `message`, `isRetryable`, and for
 * troubles of one operation a `reason` with a `_tag` of its own. What is a settled answer (a decline, a refusal by the cap) is no
 * failure: it is the value that the promise resolves with.
 *
 * TypeScript gives a rejection no type. So every call exists twice: as a method, which rejects, and in `results`, which resolves
 * with a value that says which of these unions it may be.
 */
import type { LedgerError, PipelineError, SpendCapError } from "@purser/core"
import type { RefundFailure as EngineRefundFailure, RunError } from "@purser/engine"
import { Schema } from "effect"
import type { EngineUnavailable } from "./EngineUnavailable.ts"

/** Something given is not what is asked for: a field of another name, a period that does not exist. Nothing was done. */
export class InvalidInput extends Schema.TaggedError<InvalidInput>("@purser/purser/InvalidInput")("InvalidInput", { detail: Schema.String }) {
  override get message() {
    return this.detail
  }
  get isRetryable() {
    return false
  }
  get outcome() {
    return "not_charged" as const
  }
}

/**
 * The object is closed: `not_charged` was asked of it afterwards, and nothing was begun. `unknown` was in work when
 * `PURSER_DRAIN_TIMEOUT` was over, or follows a run, whose rows may be charged: the next process goes on with it, and answers whoever
 * asks the same again.
 */
export class PurserClosed extends Schema.TaggedError<PurserClosed>("@purser/purser/PurserClosed")("PurserClosed", {
  outcome: Schema.Literals(["not_charged", "unknown"])
}) {
  override get message() {
    return this.outcome === "not_charged"
      ? "this Purser is closed: nothing was begun"
      : "this Purser was closed before the call came to its end: the next process goes on with it"
  }
  /** By another process, or by the next one. */
  get isRetryable() {
    return true
  }
}

/** What every call may fail with. */
export type CallFailure = InvalidInput | PurserClosed

/** Failures of charging: `charge`, `retry`, `rebill`. */
export type ChargeFailure = PipelineError | CallFailure
/** Failures of the cap: `openCap`. */
export type CapFailure = SpendCapError | CallFailure
/** Failures of giving money back: `refund`. */
export type GiveBackFailure = EngineRefundFailure | CallFailure
/** Failures of the store alone: `pause`, `resume`, dunning. */
export type StoreFailure = LedgerError | CallFailure
/** Failures of `status`. */
export type StatusFailure = LedgerError | SpendCapError | CallFailure
/** Failures of runs: `EngineUnavailable` where the engine, which starts with the first of them, does not start. */
export type RunFailure = RunError | LedgerError | SpendCapError | EngineUnavailable | CallFailure

/** Everything that a call can fail with. */
export type PurserError = ChargeFailure | CapFailure | GiveBackFailure | StatusFailure | RunFailure

const tags: Readonly<Record<PurserError["_tag"], true>> = {
  ChargeError: true,
  EngineUnavailable: true,
  InvalidInput: true,
  LedgerError: true,
  PurserClosed: true,
  RefundError: true,
  RunError: true,
  SpendCapError: true
}

/** Whether a rejection is one of Purser's. It narrows to the union; `_tag`, and `reason._tag`, tell which. */
export const isPurserError = (error: unknown): error is PurserError =>
  typeof error === "object" && error !== null && "_tag" in error && Object.hasOwn(tags, String(error._tag))

/** A call's end as a value. */
export type PurserResult<A, E> =
  | { readonly _tag: "Success"; readonly value: A }
  | { readonly _tag: "Failure"; readonly error: E }
