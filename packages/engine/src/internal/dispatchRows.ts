/**
 * Sends the rows of a planned run to workers: all that are due, again and again, or those of some lines once. A stop ends it
 * softly: nothing more is sent, and what was sent is waited for. So does an answer that the own ledger has nothing of.
 */
import { type ChargeClient, type ChargePause, type LedgerError, type RunLedger, RunMark, type RunRow, type RunStateTotal, type SubmitError, Tracing } from "@purser/core"
import { Clock, Duration, Effect, Option, Ref, Schedule, Stream } from "effect"
import { AnsweredElsewhere, ClientRefused, DispatchError } from "../DispatchError.ts"
import { type DispatchInput, type DispatchLines, type DispatchStop, isRowOpen, openRows, type RunProgress } from "../RunDispatch.ts"
import { Heard, Lines } from "./heard.ts"

interface Parts {
  readonly client: ChargeClient["Service"]
  readonly book: RunLedger["Service"]
  readonly shared: Option.Option<ChargePause["Service"]>
  readonly pageSize: number
  readonly patience: Duration.Duration
  readonly pause: Duration.Duration
}

/** Runs whose final answers a process remembers. */
const rememberedRuns = 256

export const makeDispatch = ({ book, client, pageSize, patience, pause, shared }: Parts) => {
  // While charging is paused nothing is sent and no patience is lost.
  const whenOpen = Option.isSome(shared) ? shared.value.whenOpen : Effect.void
  const isPaused = Option.isSome(shared) ? Effect.map(shared.value.view, (pauses) => pauses.length > 0) : Effect.succeed(false)
  const patienceMs = Duration.toMillis(patience)

  /** Whether a row may be sent; waits while charging is paused. */
  const mayGo = (stop: DispatchStop | undefined, heard: Heard): Effect.Effect<boolean> =>
    Effect.suspend(() =>
      stop?.isStopped() === true || heard.isEnough
        ? Effect.succeed(false)
        : Effect.map(stop === undefined ? whenOpen : Effect.raceFirst(whenOpen, stop.whenStopped), () => stop?.isStopped() !== true && !heard.isEnough))

  interface Sending {
    readonly runId: string
    readonly stop: DispatchStop | undefined
    readonly progress: Ref.Ref<RunProgress> | undefined
    readonly heard: Heard
    readonly settledOne: Effect.Effect<void>
  }

  /** An outcome follows its settling: a ledger that still has the row to be charged is not the one that answered. */
  const check = (runId: string, line: number, heard: Heard) =>
    book.report(runId, line - 1, 1).pipe(
      Effect.map((rows) => heard.checked(line, rows.some(isRowOpen))),
      Effect.ignore
    )

  const submit = (row: RunRow, { heard, progress, runId, settledOne, stop }: Sending) => {
    const note = (tag: keyof RunProgress["outcomes"], lastError?: string) =>
      progress === undefined ? Effect.void : Ref.update(progress, (p): RunProgress => ({
        submitted: p.submitted + 1,
        outcomes: { ...p.outcomes, [tag]: p.outcomes[tag] + 1 },
        lastError: lastError ?? p.lastError
      }))
    const request = RunMark.on(row.request, runId)
    const send = Tracing.apart("BillingRun.charge", client.submit(request), Tracing.ofCharge(request)).pipe(
      Effect.flatMap((outcome) =>
        Effect.andThen(note(outcome._tag), Effect.andThen(settledOne, Effect.suspend(() => heard.answer(row.line, outcome) ? check(runId, row.line, heard) : Effect.void)))),
      Effect.catch((error: SubmitError) =>
        Effect.logDebug(`line ${row.line} stays open: ${error.message}`).pipe(
          Effect.andThen(note("error", error.message)),
          Effect.andThen(Effect.sync(() => heard.fail(error)))
        )
      )
    )
    return heard.mayAsk(row.line) ? Effect.flatMap(mayGo(stop, heard), (goes) => goes ? send : Effect.void) : Effect.void
  }

  /** The store may be away for a while in mid-run; workers hand their charges back, and the run waits. */
  const waitForBook = <A>(call: Effect.Effect<A, LedgerError>) =>
    Effect.retry(call, {
      while: (error) => error.isRetryable,
      schedule: Schedule.spaced(pause),
      times: Math.ceil(patienceMs / Math.max(1, Duration.toMillis(pause)))
    })

  const pages = (runId: string, fromLine: number, isEnough: () => boolean, throughLine?: number) =>
    Stream.paginate<number, RunRow, LedgerError>(fromLine, (afterLine) =>
      Effect.map(waitForBook(book.pending(runId, afterLine, pageSize, throughLine)), (rows) =>
        [rows, rows.length < pageSize || isEnough() ? Option.none() : Option.some(rows[rows.length - 1]!.line)] as const))
  const isEnough = ({ heard, stop }: Pick<Sending, "heard" | "stop">) => () => heard.isEnough || stop?.isStopped() === true

  /** One pass over all rows that are due. */
  const pass = (concurrency: number, sending: Sending) =>
    pages(sending.runId, 0, isEnough(sending)).pipe(
      Stream.mapEffect((row) => submit(row, sending), { concurrency, unordered: true }),
      Stream.runDrain
    )

  /** Rows of a run with a final answer, until its ledger has all of them: a dispatch may be cut in two by a pause, or by who has it in work. */
  const finals = new Map<string, Lines>()
  const hearing = (runId: string) => {
    const final = finals.get(runId) ?? new Lines()
    // Those that never come to their end, as a canceled one, leave with time.
    if (!finals.has(runId) && finals.size >= rememberedRuns) finals.delete(finals.keys().next().value!)
    finals.set(runId, final)
    return new Heard(pageSize, final)
  }

  /** Rows that were answered, and are still to be charged by the own ledger. */
  const unheard = (runId: string, heard: Heard) =>
    pages(runId, 0, () => false, heard.lastLine).pipe(
      Stream.filter(({ line }) => heard.isForeign(line)),
      Stream.runCount
    )
  const answeredElsewhere = Effect.fnUntraced(function*(runId: string, rows: number): Effect.fn.Return<never, DispatchError> {
    // Whoever starts it once more has been told.
    finals.delete(runId)
    return yield* new DispatchError({ runId, reason: new AnsweredElsewhere({ rows: Math.max(1, rows) }) })
  })

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
  const untilSettled = Effect.fnUntraced(function*({ concurrency, progress, runId, stop }: DispatchInput): Effect.fn.Return<ReadonlyArray<RunStateTotal>, LedgerError | DispatchError> {
    let lastOpen = Number.POSITIVE_INFINITY
    const { isOver, over, settledOne } = yield* impatience
    const heard = hearing(runId)
    for (;;) {
      heard.passedOver = 0
      // A pass over many rows that nobody answers would take hours.
      yield* Effect.raceFirst(pass(concurrency, { runId, stop, progress, heard, settledOne }), over)
      if (heard.isElsewhere) return yield* answeredElsewhere(runId, yield* unheard(runId, heard))
      const summary = yield* waitForBook(book.summary(runId))
      const open = openRows(summary)
      if (stop?.isStopped() === true) return summary
      if (open < lastOpen || (yield* isPaused)) yield* settledOne
      lastOpen = open
      if (open === 0) {
        finals.delete(runId)
        return summary
      }
      if (heard.isRefused) return yield* new DispatchError({ runId, reason: new ClientRefused({ detail: heard.refusal }) })
      // A person, or dunning, may have opened a charge again that was declined, and be asking for it now: where the ledger is known to be ours, there is time.
      if ((open === heard.passedOver && !heard.isOurs) || (yield* isOver)) {
        const rows = yield* unheard(runId, heard)
        return rows === 0 ? summary : yield* answeredElsewhere(runId, rows)
      }
      // What is open now is held by a worker or waits for its next try.
      yield* stop === undefined ? Effect.sleep(pause) : Effect.timeoutOption(stop.whenStopped, pause)
    }
  })

  /** The rows of some lines, once each. */
  const lines = Effect.fnUntraced(function*({ afterLine, gate, runId, stop, throughLine }: DispatchLines): Effect.fn.Return<void, LedgerError | DispatchError> {
    const { over, settledOne } = yield* impatience
    const heard = hearing(runId)
    const sending: Sending = { runId, stop, progress: undefined, heard, settledOne }
    yield* Effect.raceFirst(
      pages(runId, afterLine, isEnough(sending), throughLine).pipe(
        Stream.mapEffect((row) => gate.withPermit(submit(row, sending)), { concurrency: pageSize, unordered: true }),
        Stream.runDrain
      ),
      over
    )
    if (heard.isElsewhere) return yield* answeredElsewhere(runId, yield* unheard(runId, heard))
  })

  return { untilSettled, lines, waitForBook }
}
