/**
 * Group commit: calls of many fibers are answered by one statement. A batch leaves as soon as an earlier one has come
 * back, so that the batch size follows the load by itself: no timer, and an idle store is called at once.
 *
 * A batch never holds two inputs of one key, because two writes of one row in one statement have no order. The later
 * one either shares the answer of the first (`follow`) or waits for the next batch. Batches run in the layer's scope and
 * never inside a caller's transaction; a caller that is interrupted leaves the queue, or its answer is dropped. The queue
 * is as long as there are callers, each of whom waits.
 */
import { Measures, MetricSeries, Tracing } from "@purser/core"
import { Cause, Context, Effect, Exit, Fiber, References, type Scope, type Tracer } from "effect"
import { type BatchedOperation, PostgresMetrics } from "../PostgresMetrics.ts"

/**
 * One call that waits. A class, as whatever else lives as long as a charge does: literals that outlive a collection of young objects are made
 * as old ones by the engine from then on, and stay until all of memory is looked through.
 */
class Entry<I, A, F> {
  readonly input: I
  /** Goes on with the caller's fiber; nobody listens a second time. */
  readonly done: (answered: Effect.Effect<A, F>) => void
  /** Who waits. */
  readonly fiber: Fiber.Fiber<unknown, unknown>

  constructor(input: I, done: (answered: Effect.Effect<A, F>) => void, fiber: Fiber.Fiber<unknown, unknown>) {
    this.input = input
    this.done = done
    this.fiber = fiber
  }
}

/** A later input of the same key, and how its answer follows from the leader's. */
interface Follower<I, A, B, F> {
  /** The leader's place in the batch. */
  readonly leader: number
  readonly entry: Entry<I, B, F>
  readonly map: (answer: A) => A
}

/** One operation's queue. */
export interface GroupCommitOptions<I, A, E, F = E, B = A> {
  /** What traces and metrics call it; without a name nothing is said of it. */
  readonly operation?: BatchedOperation
  /** Answers every input, in order. */
  readonly execute: (inputs: ReadonlyArray<I>) => Effect.Effect<ReadonlyArray<A>, E>
  /** What no batch may hold twice. */
  readonly keyOf: (input: I) => string
  /** The answer of a later input from that of an earlier one of the same key and batch; `undefined`: ask separately. */
  readonly follow?: (first: I, later: I) => ((answer: A) => A) | undefined
  /** Whether a failed batch may be halved, so that one bad input does not fail the others. It must have left no trace. */
  readonly splits: (error: E) => boolean
  /** What a batch's failure is to one of its callers; without it, the same. */
  readonly failure?: (input: I, error: E) => F
  /** How a caller goes on from its answer, in its own fiber; without it, the answer is the result. */
  readonly onward?: (input: I, answer: A) => Effect.Effect<B, F>
  readonly maxSize: number
  readonly inFlight: number
}

/** Of a batch that many charges share, no more are named than tools show. */
const linksMax = 128

/** The batch hangs in the trace of its first call; the traces of the others are linked. */
const batchSpan = (spans: ReadonlyArray<Tracer.AnySpan | undefined>): Tracer.SpanOptionsNoTrace => {
  const [parent, ...others] = spans.filter((span) => span !== undefined)
  return {
    kind: "client",
    attributes: { "purser.batch_size": spans.length },
    ...(parent === undefined ? { root: true } : { parent, links: others.slice(0, linksMax).map((span) => ({ span, attributes: {} })) })
  }
}

/** Makes the operation. */
export const make = <I, A, E, F = E, B = A>(
  options: GroupCommitOptions<I, A, E, F, B>
): Effect.Effect<(input: I) => Effect.Effect<B, F>, never, Scope.Scope> =>
  Effect.gen(function*() {
    const around = yield* Effect.context<never>()
    // Where nobody traces, the driver would make a span for each statement all the same, and read the clock for it.
    const context = (yield* Tracing.isOn)
      ? around
      : Context.add(Context.add(around, References.TracerEnabled, false), References.TracerTimingEnabled, false)
    const { operation } = options
    const measures = yield* Measures
    const failureOf = options.failure ?? ((_: I, error: E) => error as unknown as F)
    const countCalls = operation === undefined ? undefined : MetricSeries.updateOf(PostgresMetrics.batchSize.of(operation), around)
    const watch = operation === undefined || !measures ? undefined : yield* MetricSeries.stopwatch(PostgresMetrics.batchSeconds.of(operation))
    const onward = options.onward ?? ((_: I, answer: A) => Exit.succeed(answer as unknown as B))
    const observed = (entries: ReadonlyArray<Entry<I, B, F>>, batch: Effect.Effect<ReadonlyArray<A>, E>): Effect.Effect<ReadonlyArray<A>, E> =>
      operation === undefined ? batch : Effect.withFiber((fiber) => {
        countCalls?.(entries.length)
        const timed = watch === undefined ? batch : watch.around(batch)
        return Tracing.tracedIn(fiber, `ledger.${operation}`, timed, () => batchSpan(entries.map(({ fiber: caller }) => Tracing.spanOf(caller))))
      })
    let queue: Array<Entry<I, B, F>> = []
    let running = 0
    let closed = false
    const fibers = new Set<Fiber.Fiber<void>>()
    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        closed = true
        for (const entry of queue.splice(0)) entry.done(Exit.interrupt())
        return Fiber.interruptAll(fibers)
      })
    )

    /** Takes the next batch off the queue; followers stay with their leader. */
    const take = () => {
      if (queue.length === 1) {
        const alone = queue
        queue = []
        return { leaders: alone, followers: [] }
      }
      const leaders: Array<Entry<I, B, F>> = []
      const places = new Map<string, number>()
      const followers: Array<Follower<I, A, B, F>> = []
      const rest: Array<Entry<I, B, F>> = []
      for (const entry of queue) {
        const key = options.keyOf(entry.input)
        const leader = places.get(key)
        const map = leader === undefined ? undefined : options.follow?.(leaders[leader]!.input, entry.input)
        if (leader !== undefined && map !== undefined) followers.push({ leader, entry, map })
        else if (leader !== undefined || leaders.length >= options.maxSize) rest.push(entry)
        else places.set(key, leaders.push(entry) - 1)
      }
      queue = rest
      return { leaders, followers }
    }

    /** Runs a part of a batch; its answers go to the places from `from` on. */
    const run = (entries: ReadonlyArray<Entry<I, B, F>>, answers: Array<Exit.Exit<A, F>>, from: number): Effect.Effect<void> => {
      const halves = (): Effect.Effect<void> => {
        const middle = entries.length >> 1
        return Effect.andThen(run(entries.slice(0, middle), answers, from), run(entries.slice(middle), answers, from + middle))
      }
      const fail = (cause: Cause.Cause<E>): Effect.Effect<void> => {
        entries.forEach(({ input }, index) => void (answers[from + index] = Exit.failCause(Cause.map(cause, (error) => failureOf(input, error)))))
        return Effect.void
      }
      // What cannot even be made of its inputs has been sent nowhere.
      return Effect.matchCauseEffect(Effect.sync(() => options.execute(entries.map((entry) => entry.input))), {
        onFailure: (defect) => entries.length > 1 ? halves() : fail(defect),
        onSuccess: (batch) =>
          Effect.matchCauseEffect(observed(entries, batch), {
            onSuccess: (values) => {
              for (let index = 0; index < values.length; index++) answers[from + index] = Exit.succeed(values[index]!)
              return Effect.void
            },
            onFailure: (cause) => {
              const failure = cause.reasons.find((reason) => reason._tag === "Fail")
              return entries.length > 1 && failure !== undefined && options.splits(failure.error) ? halves() : fail(cause)
            }
          })
      })
    }

    const tell = ({ done, input }: Entry<I, B, F>, exit: Exit.Exit<A, F>) =>
      done(exit._tag === "Success" ? onward(input, exit.value) : Exit.failCause(exit.cause))

    const flush: Effect.Effect<void> = Effect.suspend(() => {
      const { followers, leaders } = take()
      if (leaders.length === 0) {
        // In the same step as the look into the queue, so that no call falls between the two.
        running -= 1
        return Effect.void
      }
      const answers: Array<Exit.Exit<A, F>> = []
      const answered = Effect.onExitPrimitive(run(leaders, answers, 0), (exit) => {
        const unanswered: Exit.Exit<never> = Exit.isFailure(exit) ? Exit.failCause(exit.cause) : Exit.interrupt()
        for (let index = 0; index < leaders.length; index++) tell(leaders[index]!, answers[index] ?? unanswered)
        for (const { entry, leader, map } of followers) tell(entry, Exit.map(answers[leader] ?? unanswered, map))
        return undefined
      })
      return Effect.matchCauseEffect(answered, {
        onSuccess: () => flush,
        // A defect between a batch and its callers ends neither the queue nor the wait of those who were not told.
        onFailure: (defect) => {
          for (const { done } of leaders) done(Exit.failCause(defect))
          for (const { entry } of followers) entry.done(Exit.failCause(defect))
          return flush
        }
      })
    })

    // The yield lets fibers of the same moment join. The layer's context keeps the batch out of a caller's transaction.
    const worker = Effect.andThen(Effect.yieldNow, flush)
    const fork = Effect.runForkWith(context)
    const begin = () => {
      running += 1
      const fiber = fork(worker)
      fibers.add(fiber)
      fiber.addObserver(() => void fibers.delete(fiber))
    }

    const leave = Effect.withFiber((fiber) => {
      queue = queue.filter((entry) => entry.fiber !== fiber)
      return Effect.void
    })
    return (input) =>
      Effect.callback<B, F>((resume) => {
        if (closed) return resume(Effect.interrupt)
        queue.push(new Entry<I, B, F>(input, resume, Fiber.getCurrent()!))
        if (running < options.inFlight) begin()
        return leave
      })
  })
