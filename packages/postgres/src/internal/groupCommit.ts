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
import { Effect, Exit, Metric, type Scope, type Tracer } from "effect"
import { type BatchedOperation, PostgresMetrics } from "../PostgresMetrics.ts"

interface Entry<I, A, E> {
  readonly input: I
  readonly done: (exit: Exit.Exit<A, E>) => void
  /** The span in which the call was made, when somebody traces. */
  readonly span: Tracer.AnySpan | undefined
}

/** A later input of the same key, and how its answer follows from the leader's. */
interface Follower<I, A, E> {
  readonly leader: Entry<I, A, E>
  readonly entry: Entry<I, A, E>
  readonly map: (answer: A) => A
}

/** One operation's queue. */
export interface GroupCommitOptions<I, A, E> {
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
  readonly maxSize: number
  readonly inFlight: number
}

/** Of a batch that many charges share, no more are named than tools show. */
const linksMax = 128

/** The batch hangs in the trace of its first call; the traces of the others are linked. */
const batchSpan = (spans: ReadonlyArray<Tracer.AnySpan | undefined>) => (): Tracer.SpanOptionsNoTrace => {
  const [parent, ...others] = spans.filter((span) => span !== undefined)
  return {
    kind: "client",
    attributes: { "purser.batch_size": spans.length },
    ...(parent === undefined ? { root: true } : { parent, links: others.slice(0, linksMax).map((span) => ({ span, attributes: {} })) })
  }
}

/** Makes the operation. */
export const make = <I, A, E>(
  options: GroupCommitOptions<I, A, E>
): Effect.Effect<(input: I) => Effect.Effect<A, E>, never, Scope.Scope> =>
  Effect.gen(function*() {
    const scope = yield* Effect.scope
    const context = yield* Effect.context<never>()
    const { operation } = options
    const measures = yield* Measures
    const observed = (entries: ReadonlyArray<Entry<I, A, E>>, batch: Effect.Effect<ReadonlyArray<A>, E>): Effect.Effect<ReadonlyArray<A>, E> => {
      if (operation === undefined) return batch
      const timed = measures ? MetricSeries.timed(PostgresMetrics.batchSeconds.of(operation), batch) : batch
      return Effect.andThen(
        Metric.update(PostgresMetrics.batchSize.of(operation), entries.length),
        Tracing.traced(`ledger.${operation}`, timed, batchSpan(entries.map(({ span }) => span)))
      )
    }
    let queue: Array<Entry<I, A, E>> = []
    let running = 0
    let closed = false
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        closed = true
        for (const entry of queue.splice(0)) entry.done(Exit.interrupt())
      })
    )

    /** Takes the next batch off the queue; followers stay with their leader. */
    const take = () => {
      const leaders = new Map<string, Entry<I, A, E>>()
      const followers: Array<Follower<I, A, E>> = []
      const rest: Array<Entry<I, A, E>> = []
      for (const entry of queue) {
        const key = options.keyOf(entry.input)
        const leader = leaders.get(key)
        const map = leader === undefined ? undefined : options.follow?.(leader.input, entry.input)
        if (leader !== undefined && map !== undefined) followers.push({ leader, entry, map })
        else if (leader !== undefined || leaders.size >= options.maxSize) rest.push(entry)
        else leaders.set(key, entry)
      }
      queue = rest
      return { leaders: [...leaders.values()], followers }
    }

    const run = (entries: ReadonlyArray<Entry<I, A, E>>, answers: Map<Entry<I, A, E>, Exit.Exit<A, E>>): Effect.Effect<void> =>
      Effect.flatMap(Effect.exit(observed(entries, options.execute(entries.map((entry) => entry.input)))), (exit) => {
        if (Exit.isSuccess(exit)) {
          entries.forEach((entry, index) => answers.set(entry, Exit.succeed(exit.value[index]!)))
          return Effect.void
        }
        const failure = exit.cause.reasons.find((reason) => reason._tag === "Fail")
        if (entries.length > 1 && failure !== undefined && options.splits(failure.error)) {
          const middle = entries.length >> 1
          return Effect.andThen(run(entries.slice(0, middle), answers), run(entries.slice(middle), answers))
        }
        entries.forEach((entry) => answers.set(entry, Exit.failCause(exit.cause)))
        return Effect.void
      })

    const flush: Effect.Effect<void> = Effect.suspend(() => {
      const { followers, leaders } = take()
      if (leaders.length === 0) {
        // In the same step as the look into the queue, so that no call falls between the two.
        running -= 1
        return Effect.void
      }
      const answers = new Map<Entry<I, A, E>, Exit.Exit<A, E>>()
      return run(leaders, answers).pipe(
        Effect.ensuring(Effect.sync(() => {
          for (const entry of leaders) entry.done(answers.get(entry) ?? Exit.interrupt())
          for (const { entry, leader, map } of followers) {
            entry.done(Exit.map(answers.get(leader) ?? Exit.interrupt(), map))
          }
        })),
        Effect.andThen(flush)
      )
    })

    // The yield lets fibers of the same moment join. The layer's context keeps the batch out of a caller's transaction.
    const worker = Effect.andThen(Effect.yieldNow, flush)

    const begin = Effect.runForkWith(context)
    return (input) =>
      Effect.withFiber((fiber) =>
        Effect.callback<A, E>((resume) => {
          if (closed) return resume(Effect.interrupt)
          const entry: Entry<I, A, E> = { input, done: resume, span: Tracing.spanOf(fiber) }
          queue.push(entry)
          if (running < options.inFlight) {
            running += 1
            begin(Effect.forkIn(worker, scope))
          }
          return Effect.sync(() => void (queue = queue.filter((other) => other !== entry)))
        })
      )
  })
