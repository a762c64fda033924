/**
 * A worker's process: it runs, stands still, or is dead. Everything that it does to the world passes its gate, so that a
 * process that stands still does nothing, wakes with what it was about to do, and a dead one hands nothing back.
 */
import { Effect, Latch } from "effect"
import type { Rng } from "./Rng.ts"

/** One life of a worker. */
export class Process {
  readonly name: string
  dead = false
  /** Asked before anything that the process does to the world outside, and after it. */
  atPass: () => void = () => {}
  private readonly awake = Latch.makeUnsafe(true)

  private readonly rng: Rng

  constructor(name: string, rng: Rng) {
    this.name = name
    this.rng = rng
  }

  /** The way to the world outside takes a moment, and never the same: this is where the seed chooses who is first. */
  private readonly way: Effect.Effect<void> = Effect.suspend(() => Effect.sleep(this.rng.between(0, 4)))

  /** How long a request is on its way to Stripe. */
  latencyMs(): number {
    return this.rng.between(5, 80)
  }

  /** Comes back once the process is awake. */
  readonly awakes: Effect.Effect<void> = Effect.suspend(() => this.awake.await)

  freeze() {
    this.awake.closeUnsafe()
  }

  wake() {
    this.awake.openUnsafe()
  }

  kill() {
    this.dead = true
    this.wake()
  }

  /** Waits while the process stands still; a dead one gets no further. */
  readonly pass: Effect.Effect<void> = Effect.suspend(() => {
    this.atPass()
    return this.dead ? Effect.die(new Error("the process is dead")) : this.awake.await
  }).pipe(
    Effect.andThen(Effect.suspend(() => this.dead ? Effect.die(new Error("the process is dead")) : Effect.void))
  )

  /** A call that is made again and again while nothing happens: nobody has to be first in it. */
  readonly idly = <A, E>(call: Effect.Effect<A, E>): Effect.Effect<A, E> => this.pass.pipe(Effect.andThen(call), Effect.onExit(() => this.pass))

  /** A call to the world outside, from this process. Its answer is seen when the process is awake. */
  readonly outside = <A, E>(call: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    this.way.pipe(Effect.andThen(this.pass), Effect.andThen(call), Effect.onExit(() => this.pass))
}
