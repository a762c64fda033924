/**
 * Holds leases for as long as their charges wait: for a turn under a rate limit, for a slow answer, or while charging is
 * paused. As long as this process lives, the lease is held meanwhile; a process that stands still as a whole holds nothing.
 *
 * One fiber for all charges of a process: most waits are over long before a lease is due, and then cost a place in a list.
 */
import type { ClaimedCharge, Lease, Ledger } from "@purser/core"
import { Clock, Duration, Effect, Latch, type Scope } from "effect"

/** Holds a charge's lease while an effect runs. */
export type HoldLease = (charge: ClaimedCharge) => <A, E>(wait: Effect.Effect<A, E>) => Effect.Effect<A, E>

/** The keeper of all leases. */
export interface LeaseKeeper {
  readonly hold: HoldLease
  /** From now on, within a frame that lets it go. */
  readonly take: (charge: ClaimedCharge) => Held
  readonly letGo: (held: Held | undefined) => void
}

/** A lease that is held, between its neighbours: a set would hash every one that comes and goes. */
export class Held {
  readonly lease: Lease
  readonly everyMs: number
  dueMs: number
  before: Held | undefined = undefined
  after: Held | undefined = undefined
  isIn = false

  constructor(lease: Lease, everyMs: number, dueMs: number) {
    this.lease = lease
    this.everyMs = everyMs
    this.dueMs = dueMs
  }
}

class HeldList {
  private first: Held | undefined = undefined

  get isEmpty(): boolean {
    return this.first === undefined
  }

  add(one: Held): void {
    const { first } = this
    one.isIn = true
    one.after = first
    if (first !== undefined) first.before = one
    this.first = one
  }

  delete(one: Held): void {
    if (!one.isIn) return
    const { after, before } = one
    one.isIn = false
    if (before === undefined) this.first = after
    else before.after = after
    if (after !== undefined) after.before = before
    // One that has grown old would keep its young neighbours until all of memory is looked through.
    one.before = one.after = undefined
  }

  /** In the order in which they came. */
  all(): Array<Held> {
    const all: Array<Held> = []
    for (let one = this.first; one !== undefined; one = one.after) all.push(one)
    return all.toReversed()
  }
}

/** Renews at a third of the time that a claim has given; in whole milliseconds, since no clock wakes anybody at a part of one. */
const everyMsOf = ({ leaseLeftMs }: ClaimedCharge) => Math.max(50, Math.ceil(leaseLeftMs / 3))

/** The keeper's fiber ends with the scope. */
export const makeLeaseKeeper = (ledger: Ledger["Service"]): Effect.Effect<LeaseKeeper, never, Scope.Scope> =>
  Effect.gen(function*() {
    const clock = yield* Clock.Clock
    const held = new HeldList()
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
      const all = held.all()
      const due = all.filter(({ dueMs }) => dueMs <= nowMs)
      if (due.length > 0) return Effect.forEach(due, renew, { concurrency: "unbounded", discard: true })
      if (held.isEmpty) {
        some.closeUnsafe()
        return some.await
      }
      wakeMs = Math.min(...all.map(({ dueMs }) => dueMs))
      sooner.closeUnsafe()
      return Effect.raceFirst(Effect.sleep(Duration.millis(wakeMs - nowMs)), sooner.await).pipe(
        Effect.andThen(Effect.sync(() => void (wakeMs = Infinity)))
      )
    })
    yield* Effect.forkScoped(Effect.forever(turn))

    const take = (charge: ClaimedCharge): Held => {
      const everyMs = everyMsOf(charge)
      const one = new Held(charge.lease, everyMs, clock.currentTimeMillisUnsafe() + everyMs)
      held.add(one)
      some.openUnsafe()
      if (one.dueMs < wakeMs && wakeMs !== Infinity) sooner.openUnsafe()
      return one
    }
    const letGo = (one: Held | undefined) => {
      if (one !== undefined) held.delete(one)
    }
    const hold: HoldLease = (charge) => (wait) => {
      let one: Held | undefined
      // Put in within what takes it out again: a fiber may be stopped between any two effects.
      return Effect.onExitPrimitive(
        Effect.suspend(() => {
          one = take(charge)
          return wait
        }),
        () => {
          letGo(one)
          return undefined
        }
      )
    }
    return { hold, take, letGo }
  })
