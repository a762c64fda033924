/**
 * The clock that a store counts its leases on, as a test moves it: Effect's for the memory stores, the database's own
 * for the others. A conformance suite knows only this.
 */
import { Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"

/** Moves the store's time forward by milliseconds. */
export class StoreClock extends Context.Service<StoreClock, {
  readonly advance: (ms: number) => Effect.Effect<void>
}>()("@purser/testkit/StoreClock") {
  /** For stores that live on Effect's clock. */
  static readonly layerTestClock: Layer.Layer<StoreClock> = Layer.succeed(StoreClock, { advance: (ms) => TestClock.adjust(ms) })

  /** Moves the time of the store under test. */
  static readonly advance = (ms: number): Effect.Effect<void, never, StoreClock> => Effect.flatMap(StoreClock, (clock) => clock.advance(ms))
}
