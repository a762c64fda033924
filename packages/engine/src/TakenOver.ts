/** How a charge came to be taken over from whoever had it before. */
import type { Effect } from "effect"

/** What `ChargePipeline.resume` is told of it. */
export interface TakenOver {
  /** When the ledger was asked for the charge, in ms by this process's clock: its lease may have begun then. */
  readonly askedAtMs: number
  /** Gives it its turn; the lease is held as long as it waits for that. */
  readonly turn: <A, E>(work: Effect.Effect<A, E>) => Effect.Effect<A, E>
}
