/**
 * Holds leases for as long as their charges wait: for a turn under a rate limit, for a slow answer, or while charging is
 * paused. As long as this process lives, the lease is held meanwhile; a process that stands still as a whole holds nothing.
 *
 * One fiber for all charges of a process: most waits are over long before a lease is due, and then cost an entry in a set.
 */
import type { ClaimedCharge, Lease, Ledger } from "@purser/core"
import { Clock, Duration, Effect, Latch, type Scope } from "effect"

/** Holds a charge's lease while an effect runs. */
export type HoldLease = (charge: ClaimedCharge) => <A, E>(wait: Effect.Effect<A, E>) => Effect.Effect<A, E>

class Held {
  readonly lease: Lease
  readonly everyMs: number
  dueMs: number

  constructor(lease: Lease, everyMs: number, dueMs: number) {
    this.lease = lease
    this.everyMs = everyMs
    this.dueMs = dueMs
  }
}

/** Renews at a third of the time that a claim has given; in whole milliseconds, since no clock wakes anybody at a part of one. */
const everyMsOf = ({ leaseLeftMs }: ClaimedCharge) => Math.max(50, Math.ceil(leaseLeftMs / 3))

/** The keeper's fiber ends with the scope. */
export const makeLeaseKeeper = (ledger: Ledger["Service"]): Effect.Effect<HoldLease, never, Scope.Scope> =>
  Effect.gen(function*() {
    const clock = yield* Clock.Clock
    const held = new Set<Held>()
    const some = yield* Latch.make(false)
    const sooner = yield* Latch.make(false)
    let wakeMs = Infinity

    const renew = (one: Held) =>
      ledger.extend(one.lease).pipe(
        Effect.catch((error) => Effect.as(Effect.logDebug(`the lease is not renewed: ${error.message}`), true)),
        // A lease that is lost stays lost.
        Effect.map((ours) => void (ours ? one.dueMs = clock.currentTimeMillisUnsafe() + one.everyMs : held.delete(one)))
      )
    const turn = Effect.suspend(() => {
      const nowMs = clock.currentTimeMillisUnsafe()
      const due = [...held].filter(({ dueMs }) => dueMs <= nowMs)
      if (due.length > 0) return Effect.forEach(due, renew, { concurrency: "unbounded", discard: true })
      if (held.size === 0) {
        some.closeUnsafe()
        return some.await
      }
      wakeMs = Math.min(...Array.from(held, ({ dueMs }) => dueMs))
      sooner.closeUnsafe()
      return Effect.raceFirst(Effect.sleep(Duration.millis(wakeMs - nowMs)), sooner.await).pipe(
        Effect.andThen(Effect.sync(() => void (wakeMs = Infinity)))
      )
    })
    yield* Effect.forkScoped(Effect.forever(turn))

    return (charge) => (wait) =>
      Effect.suspend(() => {
        const everyMs = everyMsOf(charge)
        const one = new Held(charge.lease, everyMs, clock.currentTimeMillisUnsafe() + everyMs)
        held.add(one)
        some.openUnsafe()
        if (one.dueMs < wakeMs && wakeMs !== Infinity) sooner.openUnsafe()
        return Effect.onExitPrimitive(wait, () => {
          held.delete(one)
          return undefined
        })
      })
  })
