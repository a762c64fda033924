/**
 * The store's answers in time, or none: a store that hangs must not keep a call for minutes and forward it then.
 *
 * What is decided after its client was refused is never carried out: its room is given back. What cannot be written down
 * yet is tried until it is. Both wait in memory, up to a limit: above it calls are refused at once, or their room stays
 * taken until the same key comes again.
 */
import { Clock, Effect, Exit, Fiber, Schedule } from "effect"
import type { Outcome, Verdict, VaultStore, Wish } from "../VaultStore.ts"
import { VaultStoreError, VaultStoreUnavailable } from "../VaultStoreError.ts"

/** How long, and how much. */
export interface TimelyOptions {
  readonly store: VaultStore["Service"]
  readonly decideMs: number
  readonly waitingMax: number
}

const late = (detail: string) => new VaultStoreError({ reason: new VaultStoreUnavailable({ operation: "decide", detail }) })

const forwards = (verdict: Verdict): boolean => verdict.verdict === "permitted" || verdict.verdict === "replayed" || verdict.verdict === "resumed"

/** What was never sent. */
export const unsent = (wish: Wish, verdict: Verdict): Outcome => ({
  verdict, kind: wish.kind, key: verdict.first_key ?? wish.key, effect: "nothing", objectId: null, intentId: null, amountMinor: null, status: null, requestId: null,
  replayed: false, detail: "decided too late, not sent", answer: null
})

/** Waits at most so long for a fiber that goes on; `undefined` when it was not done. Also where nothing is interruptible. */
const within = <A, E>(fiber: Fiber.Fiber<A, E>, ms: number): Effect.Effect<Exit.Exit<A, E> | undefined> =>
  Effect.raceFirst(Effect.interruptible(Fiber.await(fiber)), Effect.interruptible(Effect.as(Effect.sleep(ms), undefined)))

// Soon at first, then every ten seconds, for as long as it takes.
const patience = Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("10 seconds")])

/** Makes both. */
export const make = ({ decideMs, store, waitingMax }: TimelyOptions) => {
  let undecided = 0
  let unrecorded = 0

  /** The first write may have got through: what may be said once only is not said again. */
  const insist = (outcome: Outcome, first: VaultStoreError): Effect.Effect<void> =>
    (first.isRetryable
      ? store.record(outcome.effect === "nothing" ? { ...outcome, effect: "unknown" } : outcome).pipe(
        Effect.retry({ schedule: patience, while: ({ isRetryable }) => isRetryable })
      )
      : Effect.fail(first)).pipe(Effect.catch((error) => unwritten(outcome, error.message)))

  const unwritten = (outcome: Outcome, detail: string) =>
    Effect.logError("an outcome could not be recorded; its room stays taken").pipe(
      Effect.annotateLogs({ decision: String(outcome.verdict.seq), effect: outcome.effect, requestId: outcome.requestId, detail })
    )

  const record = (outcome: Outcome): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (unrecorded >= waitingMax) return unwritten(outcome, "too many wait for the store")
      unrecorded += 1
      return Effect.gen(function*() {
        const first = yield* Effect.forkDetach(store.record(outcome), { startImmediately: true })
        const rest = Effect.catch(Fiber.join(first), (error) => insist(outcome, error))
        yield* Effect.forkDetach(Effect.ensuring(rest, Effect.sync(() => void (unrecorded -= 1))))
        yield* within(first, decideMs)
      })
    })

  const decide = (wish: Wish): Effect.Effect<Verdict, VaultStoreError> =>
    Effect.gen(function*() {
      if (undecided >= waitingMax) return yield* late("too many calls wait for it")
      const startedMs = yield* Clock.currentTimeMillis
      undecided += 1
      const fiber = yield* Effect.forkDetach(Effect.ensuring(store.decide(wish), Effect.sync(() => void (undecided -= 1))), { startImmediately: true })
      const exit = yield* within(fiber, decideMs)
      // A process that was stopped itself finds its timer and the answer at once.
      if (exit !== undefined && (Exit.isFailure(exit) || (yield* Clock.currentTimeMillis) - startedMs <= decideMs)) return yield* exit
      const drop = Effect.flatMap(Fiber.await(fiber), (answer) =>
        Exit.isSuccess(answer) && forwards(answer.value) ? record(unsent(wish, answer.value)) : Effect.void)
      yield* Effect.forkDetach(drop)
      return yield* late(`no answer within ${decideMs} ms`)
    })

  return { decide, record }
}
