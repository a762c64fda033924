/**
 * The contract of the book of calls: which requests to the processor were made for a charge, with the id that the processor
 * gave each, by which its support finds it. It decides nothing, and a call never waits for it.
 */
import { Context, Effect, Layer } from "effect"
import type { ChargeKey } from "./ChargeKey.ts"
import type { LedgerError } from "./LedgerError.ts"

/** One call on behalf of a charge. */
export interface ProcessorCall {
  readonly chargeKey: ChargeKey
  /** For example `create`, `confirm`, `refund`. */
  readonly operation: string
  /** The processor's status, or why there is none, for example `timeout`. */
  readonly status: string
  /** Stripe's `Request-Id`; null where no answer came. */
  readonly requestId: string | null
  /** Whether the answer is the stored one of an earlier call under the same idempotency key. */
  readonly replayed: boolean
  readonly elapsedMs: number
}

/** A call of the book, with the time of its end on the caller's clock. */
export interface NotedCall extends ProcessorCall {
  readonly atMs: number
}

/** Where clients of the processor tell their calls; without a book they tell nobody, and it costs nothing. */
export const CallSink = Context.Reference<((call: NotedCall) => Effect.Effect<void>) | undefined>("@purser/core/CallSink", { defaultValue: () => undefined })

/** The book. */
export class CallBook extends Context.Service<CallBook, {
  /** Keeps a call soon. It never fails and never waits for a store. */
  readonly note: (call: NotedCall) => Effect.Effect<void>
  /** The calls of one charge, in the order of their ends. */
  readonly of: (chargeKey: ChargeKey, limit: number) => Effect.Effect<ReadonlyArray<NotedCall>, LedgerError>
}>()("@purser/core/CallBook") {
  /** Makes clients that are built on top tell this book. */
  static readonly layerSink: Layer.Layer<never, never, CallBook> = Layer.effect(CallSink, Effect.map(CallBook, ({ note }) => note))
}
