/**
 * Time and order of a simulated world: a scheduler that runs ready fibers in an order of the seed's choice, and a clock
 * that moves only when nothing can run any more, to the moment of the next sleeper.
 *
 * Effect's TestClock moves when a test tells it to and takes a fiber that awaits a promise for idle; here the real Stripe
 * SDK builds each request behind promises, and nobody knows beforehand when a world is at rest. Real time and real chance
 * have no way in.
 */
import { Clock, ConfigProvider, Context, Duration, Effect, Random, References, Scheduler } from "effect"
import { digests } from "./DurableEngine.ts"
import type { Rng } from "./Rng.ts"

interface Sleeper {
  readonly atMs: number
  readonly seq: number
  readonly wake: () => void
}

/** When the worlds begin: 2026-11-15. */
export const startMs = Date.UTC(2026, 10, 15)

/** A world ran for longer than any world should, or came to rest with somebody still waiting. */
export class Stuck extends Error {}

const isBefore = (one: Sleeper, other: Sleeper) => one.atMs < other.atMs || (one.atMs === other.atMs && one.seq < other.seq)

/** Sleepers in the order of their time: a binary heap. */
class Agenda {
  private readonly heap: Array<Sleeper> = []
  get size() {
    return this.heap.length
  }
  push(sleeper: Sleeper) {
    const { heap } = this
    let at = heap.push(sleeper) - 1
    while (at > 0) {
      const above = (at - 1) >> 1
      if (!isBefore(heap[at]!, heap[above]!)) break
      ;[heap[at], heap[above]] = [heap[above]!, heap[at]!]
      at = above
    }
  }
  pop(): Sleeper | undefined {
    const { heap } = this
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined || heap.length === 0) return first
    heap[0] = last
    for (let at = 0;;) {
      const left = at * 2 + 1
      if (left >= heap.length) break
      const least = left + 1 < heap.length && isBefore(heap[left + 1]!, heap[left]!) ? left + 1 : left
      if (!isBefore(heap[least]!, heap[at]!)) break
      ;[heap[at], heap[least]] = [heap[least]!, heap[at]!]
      at = least
    }
    return first
  }
}

/** One world's time and order. */
export class Kernel {
  nowMs = startMs
  /** Tasks that were run and sleepers that were woken: a measure of work that is the same for the same seed. */
  steps = 0
  /** Code that is being loaded from outside the world, whose time stands still meanwhile. */
  loading = 0
  readonly context: Context.Context<never>
  private readonly ready: Array<() => void> = []
  private readonly agenda = new Agenda()
  private readonly rng: Rng
  private seq = 0

  constructor(rng: Rng, config: Readonly<Record<string, string>>) {
    this.rng = rng.branch("order")
    const chance = rng.branch("program")
    const clock: Clock.Clock = {
      currentTimeMillisUnsafe: () => this.nowMs,
      currentTimeMillis: Effect.sync(() => this.nowMs),
      currentTimeNanosUnsafe: () => BigInt(this.nowMs) * 1_000_000n,
      currentTimeNanos: Effect.sync(() => BigInt(this.nowMs) * 1_000_000n),
      monotonicTimeNanosUnsafe: () => BigInt(this.nowMs) * 1_000_000n,
      monotonicTimeNanos: Effect.sync(() => BigInt(this.nowMs) * 1_000_000n),
      sleep: (duration) => this.sleep(Duration.toMillis(duration))
    }
    const scheduler: Scheduler.Scheduler = {
      executionMode: "async",
      shouldYield: (fiber) => fiber.currentOpCount >= 2048,
      makeDispatcher: () => ({ scheduleTask: (task) => void this.ready.push(task), flush: () => this.runReady() })
    }
    this.context = Context.make(Clock.Clock, clock).pipe(
      Context.add(Scheduler.Scheduler, scheduler),
      Context.add(Random.Random, { nextDoubleUnsafe: chance.next, nextIntUnsafe: () => chance.between(-(2 ** 31), 2 ** 31 - 1) }),
      Context.add(References.MinimumLogLevel, "None"),
      Context.add(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(config)),
      Context.merge(digests)
    ) as Context.Context<never>
  }

  /** Runs an effect of this world until it is done; what it forked goes on with the next run. */
  async run<A, E>(effect: Effect.Effect<A, E>, stepsMax: number): Promise<A> {
    const limit = this.steps + stepsMax
    const fiber = Effect.runForkWith(this.context)(effect)
    for (;;) {
      if (this.steps > limit) throw new Stuck("the world goes on for ever")
      this.runReady(limit)
      // All promises that can be kept are kept before a macrotask runs.
      await new Promise<void>((resolve) => setImmediate(resolve))
      if (this.ready.length > 0) continue
      const exit = fiber.pollUnsafe()
      if (exit !== undefined) return Effect.runSync(exit)
      if (this.loading > 0) continue
      const sleeper = this.agenda.pop()
      if (sleeper === undefined) throw new Stuck("nothing can run, nobody sleeps, and the world is not done")
      this.nowMs = sleeper.atMs
      this.steps += 1
      sleeper.wake()
    }
  }

  private runReady(limit = Number.POSITIVE_INFINITY) {
    const { ready } = this
    while (ready.length > 0) {
      if (++this.steps > limit) throw new Stuck("the world goes on for ever")
      const at = this.rng.between(0, ready.length - 1)
      const task = ready[at]!
      ready[at] = ready[ready.length - 1]!
      ready.pop()
      task()
    }
  }

  private sleep(ms: number): Effect.Effect<void> {
    if (ms <= 0) return Effect.yieldNow
    return Effect.callback<void>((resume) => {
      if (!Number.isFinite(ms)) return
      let live = true
      this.agenda.push({ atMs: this.nowMs + Math.ceil(ms), seq: this.seq++, wake: () => live && resume(Effect.void) })
      return Effect.sync(() => {
        live = false
      })
    })
  }
}
