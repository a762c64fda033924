/** Where clients of the processor tell their calls. A reference and no service: a client works without a book. */
import { Context, type Effect } from "effect"
import type { ChargeKey } from "./ChargeKey.ts"

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
