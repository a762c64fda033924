/**
 * Sends the rows of a planned run to workers: all that are due, again and again, or those of some lines once. A stop ends it
 * softly: nothing more is sent, and what was sent is waited for.
 */
import { type ChargeClient, type ChargePause, type LedgerError, type RunLedger, RunMark, type RunRow, type RunStateTotal, type SubmitError, Tracing } from "@purser/core"
import { Clock, Duration, Effect, Option, Ref, Schedule, Stream } from "effect"
import { type DispatchInput, type DispatchLines, type DispatchStop, openRows, type RunProgress } from "../RunDispatch.ts"

interface Parts {
  readonly client: ChargeClient["Service"]
  readonly book: RunLedger["Service"]
  readonly shared: Option.Option<ChargePause["Service"]>
  readonly pageSize: number
  readonly patience: Duration.Duration
  readonly pause: Duration.Duration
}

export const makeDispatch = ({ book, client, pageSize, patience, pause, shared }: Parts) => {
  // While charging is paused nothing is sent and no patience is lost.
  const whenOpen = Option.isSome(shared) ? shared.value.whenOpen : Effect.void
  const isPaused = Option.isSome(shared) ? Effect.map(shared.value.view, (pauses) => pauses.length > 0) : Effect.succeed(false)
  const patienceMs = Duration.toMillis(patience)

  /** Whether a row may be sent; waits while charging is paused. */
  const mayGo = (stop: DispatchStop | undefined): Effect.Effect<boolean> =>
    stop === undefined ? Effect.as(whenOpen, true) : Effect.suspend(() =>
      stop.isStopped()
        ? Effect.succeed(false)
        : Effect.map(Effect.raceFirst(whenOpen, stop.whenStopped), () => !stop.isStopped()))

  const submit = (row: RunRow, runId: string, stop: DispatchStop | undefined, progress: Ref.Ref<RunProgress> | undefined, settledOne: Effect.Effect<void>) => {
    const note = (tag: keyof RunProgress["outcomes"], lastError?: string) =>
      progress === undefined ? Effect.void : Ref.update(progress, (p): RunProgress => ({
        submitted: p.submitted + 1,
        outcomes: { ...p.outcomes, [tag]: p.outcomes[tag] + 1 },
        lastError: lastError ?? p.lastError
      }))
    const request = RunMark.on(row.request, runId)
    const send = Tracing.apart("BillingRun.charge", client.submit(request), Tracing.ofCharge(request)).pipe(
      Effect.flatMap((outcome) => Effect.andThen(note(outcome._tag), settledOne)),
      Effect.catch((error: SubmitError) =>
        Effect.logDebug(`line ${row.line} stays open: ${error.message}`).pipe(
          Effect.andThen(note("error", error.message))
        )
      )
    )
    return Effect.flatMap(mayGo(stop), (goes) => goes ? send : Effect.void)
  }

  /** The store may be away for a while in mid-run; workers hand their charges back, and the run waits. */
  const waitForBook = <A>(call: Effect.Effect<A, LedgerError>) =>
    Effect.retry(call, {
      while: (error) => error.isRetryable,
      schedule: Schedule.spaced(pause),
      times: Math.ceil(patienceMs / Math.max(1, Duration.toMillis(pause)))
    })

  const pages = (runId: string, fromLine: number, stop: DispatchStop | undefined, throughLine?: number) =>
    Stream.paginate<number, RunRow, LedgerError>(fromLine, (afterLine) =>
      Effect.map(waitForBook(book.pending(runId, afterLine, pageSize, throughLine)), (rows) =>
        [rows, rows.length < pageSize || stop?.isStopped() === true ? Option.none() : Option.some(rows[rows.length - 1]!.line)] as const))

  /** One pass over all rows that are due. */
  const pass = ({ concurrency, progress, runId, stop }: DispatchInput, settledOne: Effect.Effect<void>) =>
    pages(runId, 0, stop).pipe(
      Stream.mapEffect((row) => submit(row, runId, stop, progress, settledOne), { concurrency, unordered: true }),
      Stream.runDrain
    )

  /** Ends when nothing has been settled for so long; `settledOne` begins the wait anew. */
  const impatience = Effect.map(Clock.currentTimeMillis, (begunMs) => {
    let lastMs = begunMs
    const settledOne = Effect.map(Clock.currentTimeMillis, (nowMs) => {
      lastMs = nowMs
    })
    const over: Effect.Effect<void> = Effect.gen(function*() {
      for (;;) {
        const leftMs = lastMs + patienceMs - (yield* Clock.currentTimeMillis)
        if (yield* isPaused) {
          yield* Effect.andThen(whenOpen, settledOne)
          continue
        }
        if (leftMs <= 0) return
        yield* Effect.sleep(leftMs)
      }
    })
    return { settledOne, over, isOver: Effect.map(Clock.currentTimeMillis, (nowMs) => nowMs - lastMs >= patienceMs) }
  })

  /** All rows, pass after pass. Answers the account as it is at the end, and whether a stop ended it. */
  const untilSettled = Effect.fnUntraced(function*(input: DispatchInput): Effect.fn.Return<ReadonlyArray<RunStateTotal>, LedgerError> {
    let lastOpen = Number.POSITIVE_INFINITY
    const { isOver, over, settledOne } = yield* impatience
    for (;;) {
      // A pass over many rows that nobody answers would take hours.
      yield* Effect.raceFirst(pass(input, settledOne), over)
      const summary = yield* waitForBook(book.summary(input.runId))
      const open = openRows(summary)
      if (input.stop?.isStopped() === true) return summary
      if (open < lastOpen || (yield* isPaused)) yield* settledOne
      lastOpen = open
      if (open === 0 || (yield* isOver)) return summary
      // What is open now is held by a worker or waits for its next try.
      yield* input.stop === undefined ? Effect.sleep(pause) : Effect.timeoutOption(input.stop.whenStopped, pause)
    }
  })

  /** The rows of some lines, once each. */
  const lines = Effect.fnUntraced(function*({ afterLine, gate, runId, stop, throughLine }: DispatchLines): Effect.fn.Return<void, LedgerError> {
    const { over, settledOne } = yield* impatience
    yield* Effect.raceFirst(
      pages(runId, afterLine, stop, throughLine).pipe(
        Stream.mapEffect((row) => gate.withPermit(submit(row, runId, stop, undefined, settledOne)), { concurrency: pageSize, unordered: true }),
        Stream.runDrain
      ),
      over
    )
  })

  return { untilSettled, lines, waitForBook }
}
