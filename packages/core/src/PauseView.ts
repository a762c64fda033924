/**
 * What one process believes about the pauses, and those who wait for it to change. Drivers of `ChargePause` show it what
 * their store says.
 */
import { Effect, Latch } from "effect"
import type { ChargePause, Pause } from "./ChargePause.ts"

/** The waiting half of `ChargePause`, and the way to change it. */
export interface PauseView extends Pick<ChargePause["Service"], "whenOpen" | "isOpen" | "whenPaused" | "whenOutage" | "view"> {
  readonly show: (pauses: ReadonlyArray<Pause>) => Effect.Effect<void>
}

/** A view that is closed until something is shown to it, or that begins with no pause. */
export const makePauseView = (known: boolean): Effect.Effect<PauseView> =>
  Effect.gen(function*() {
    const open = yield* Latch.make(known)
    const paused = yield* Latch.make(false)
    const outage = yield* Latch.make(false)
    let seen: ReadonlyArray<Pause> = []
    return {
      whenOpen: open.await,
      isOpen: () => open.isOpen(),
      whenPaused: paused.await,
      whenOutage: outage.await,
      view: Effect.sync(() => seen),
      show: (pauses) =>
        Effect.suspend(() => {
          seen = pauses
          const isOutage = pauses.some(({ cause }) => cause === "outage")
          const isPaused = pauses.length > 0
          return Effect.all([isPaused ? open.close : open.open, isPaused ? paused.open : paused.close, isOutage ? outage.open : outage.close], { discard: true })
        })
    }
  })
