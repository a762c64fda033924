/**
 * The contract of the book of calls: which requests to the processor were made for a charge, with the id that the processor
 * gave each, by which its support finds it. It decides nothing, and a call never waits for it.
 */
import { Context, Effect, Layer } from "effect"
import { CallSink, type NotedCall } from "./CallSink.ts"
import type { ChargeKey } from "./ChargeKey.ts"
import type { LedgerError } from "./LedgerError.ts"

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
