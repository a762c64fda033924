/** How a run plans without a person beside it: where its rows come from, and what is expected of their totals. */
import { type BillingPeriod, ChargeRequest, type LedgerError, periodHasEnded, type RunLedger, type RunRow, type RunStash, type SpendCapError } from "@purser/core"
import { Clock, Effect, Stream } from "effect"
import type { BillingRun } from "../BillingRun.ts"
import { decideFor } from "../RunDecision.ts"
import type { ClosedDefinition } from "../RunDefinition.ts"
import { RunError, RunStateRefused } from "../RunError.ts"
import type { RunOptions } from "../RunReport.ts"
import { patiently, surely } from "./runControl.ts"

/** Which lines came of it. */
export interface PlannedLines {
  readonly afterLine: number
  readonly throughLine: number
}

/** A period that somebody allowed by name is billed though it has not begun. */
const allow = (options: RunOptions, nowMs: number) => {
  const early = new Map<BillingPeriod, boolean>()
  const isEarly = (period: BillingPeriod) => {
    const known = early.get(period) ?? (options.allowPeriods.includes(period) && !periodHasEnded(period, nowMs))
    early.set(period, known)
    return known
  }
  return (row: RunRow): RunRow =>
    isEarly(row.request.billingPeriod) ? { ...row, request: new ChargeRequest({ ...row.request, allowFuture: true }, { disableChecks: true }) } : row
}

interface Parts {
  readonly runs: BillingRun["Service"]
  readonly book: RunLedger["Service"]
  readonly stash: RunStash["Service"]
  /** Comes back once the run is canceled: its source is read no further then. */
  readonly canceled: (runId: string) => Effect.Effect<void>
}

interface PlanOf {
  readonly runId: string
  readonly name: string
  readonly round: number
  /** The run's last line before this round. */
  readonly afterLine: number
  readonly params: unknown
  readonly options: RunOptions
  readonly definition: ClosedDefinition
  /** Of chunks, where the definition has stages. */
  readonly chunks: number
}

/** The source, which fails as soon as the run is canceled, also while it waits for its next row. */
const untilCanceled = <A, E>({ canceled }: Parts, { name, runId }: Pick<PlanOf, "runId" | "name">, rows: Stream.Stream<A, E>): Stream.Stream<A, E | RunError> =>
  Stream.interruptWhen(rows, Effect.andThen(canceled(runId), new RunError({ reason: new RunStateRefused({ run: name, state: "canceling", act: "planned" }) })))

const isCanceled = (error: { readonly _tag: string }) => error instanceof RunError && error.reason._tag === "RunStateRefused"

/** Keeps the source's chunks; answers how many, or null when the run was canceled meanwhile. A try that was cut short begins anew. */
export const stashSource = Effect.fnUntraced(function*(
  parts: Parts,
  { definition, name, params, round, runId }: Pick<PlanOf, "runId" | "name" | "round" | "params" | "definition">
): Effect.fn.Return<number | null, RunError> {
  const { stash } = parts
  if (definition.source._tag === "Rows") return 0
  const place = { runId, round, stage: 0 }
  let chunks = 0
  return yield* Stream.runForEach(untilCanceled(parts, { name, runId }, definition.source.chunks(params)), (body) => surely(stash.put(place, chunks++, body))).pipe(
    Effect.andThen(() => surely(stash.cut(place, chunks))),
    Effect.map(() => chunks),
    Effect.catchIf(isCanceled, () => Effect.succeed(null))
  )
})

/** What the stages made, as rows. */
const stagedRows = ({ stash }: Parts, { chunks, definition, round, runId }: PlanOf): Stream.Stream<ReadonlyArray<RunRow>, RunError> => {
  const place = { runId, round, stage: definition.before.length }
  let line = 0
  return Stream.range(0, chunks - 1).pipe(
    Stream.mapEffect((chunk) =>
      Effect.gen(function*() {
        const body = yield* surely(stash.get(place, chunk))
        if (body === undefined) return yield* Effect.die(new Error(`Bug: chunk ${chunk} of ${runId} is not in the stash`))
        return (yield* definition.requests(body)).map((request): RunRow => ({ line: ++line, chargeKey: request.chargeKey, request }))
      })),
    Stream.filter((rows) => rows.length > 0)
  )
}

/** Makes the rows obligations; null when the run was canceled before that. A try that was cut short after it finds them planned, and plans nothing again. */
export const planRun = Effect.fnUntraced(function*(parts: Parts, plan: PlanOf): Effect.fn.Return<PlannedLines | null, RunError | SpendCapError> {
  const { book, runs } = parts
  const { afterLine, definition, name, options, params, round, runId } = plan
  const mark = allow(options, yield* Clock.currentTimeMillis)
  const rows = definition.source._tag === "Rows" ? definition.source.rows(params) : plan.chunks === 0 ? Stream.empty : stagedRows(parts, plan)
  const isPlanned = round > 1
    ? Effect.succeed(false)
    : Effect.map(book.summary(runId), (summary) => summary.length > 0 && summary.every(({ state }) => state !== "staged"))
  const planning = Effect.suspend(() => runs.plan({
    runId: round === 1 ? runId : `${runId}/${round}`,
    source: name,
    rows: untilCanceled(parts, plan, Stream.map(rows, (chunk) => chunk.map(mark))),
    decide: decideFor(options),
    overCap: options.overCap,
    ...(round === 1 ? {} : { extends: runId })
  }))
  // Looked at before each try: one whose answer was lost may have planned them.
  const planned = yield* patiently(Effect.flatMap(isPlanned, (is) => is ? Effect.void : Effect.asVoid(planning))).pipe(
    Effect.as(true),
    Effect.catchTag("LedgerError", (error: LedgerError) => Effect.die(error)),
    Effect.catchIf(isCanceled, () => Effect.succeed(false))
  )
  if (!planned) return null
  return { afterLine, throughLine: yield* surely(book.lastLine(runId)) }
})
