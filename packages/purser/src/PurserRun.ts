/**
 * A billing run for plain programs: rows from an array or from anything that can be iterated, also as they come; progress as an
 * async iterable, and the end as a promise.
 *
 * The rows are read and planned before the run is registered, so that what was handed over is in the ledger and outlives this
 * process. A run belongs to the database and not to the object: whoever has its name can watch, pause and cancel it.
 */
import { ChargeRequest, defaultNamespace, isRunOver, RunLedger, type RunRecord, RunRegistry, type RunRow, type RunState } from "@purser/core"
import { BillingRun, comparePlanned, compareRows, decideFor, newRunId, type RowDifferences, RunError, RunOptions, Runs, RunStateRefused, type RunView, stagedDefinition, UnknownRun } from "@purser/engine"
import { Effect, Schema, Stream } from "effect"
import { minorUnits, type MinorUnits } from "./internal/plain.ts"
import { InvalidInput, type RunFailure } from "./PurserError.ts"
import { type ChargeInput, onlyFieldsOf, type PeriodLabels, readCharge, readCurrency, readList, readPeriod, readTexts, readTotal } from "./PurserInput.ts"

/** What a period's charges should add up to. */
export interface ExpectedTotal {
  readonly billingPeriod: string
  readonly currency: string
  readonly expectedMinor: number | bigint
  readonly namespace?: string
}

/** A run that is to be. */
export interface RunInput {
  /** Given once: the same name again answers the run that has it, and charges nobody. Rows that this run does not have are refused then. */
  readonly name: string
  readonly rows: Iterable<ChargeInput> | AsyncIterable<ChargeInput>
  /** Totals by period and currency. Without any, a cap that is open stays, and else the rows' own total is expected. */
  readonly expected?: ReadonlyArray<ExpectedTotal>
  /** Periods that are billed though they are not over. */
  readonly allowPeriods?: ReadonlyArray<string>
  /** When the total does not fit under the cap: refuse the run, which is the default, or charge what fits. */
  readonly overCap?: "refuse" | "fits"
  /** Requests in flight; 128 unless told. */
  readonly concurrency?: number
  /** Closes the caps of the periods when every row is settled. */
  readonly closePeriod?: boolean
  readonly actor?: string
}

/** How many rows stand how. `open` are still to be charged; `other` are canceled, quarantined or in conflict with the ledger. */
export interface RunCounts {
  readonly rows: number
  readonly open: number
  readonly succeeded: number
  readonly declined: number
  readonly rejected: number
  readonly processing: number
  readonly requiresAction: number
  readonly other: number
}

/** A run as it stands. */
export interface RunStatus {
  readonly runId: string
  readonly name: string
  readonly state: RunState
  readonly counts: RunCounts
  /** What was received, by currency, in minor units. */
  readonly receivedMinor: Readonly<Record<string, MinorUnits>>
  /** Why it failed, or what a person should know. */
  readonly detail: string | null
}

/** A run, to be watched and acted upon. Each loop over it follows the run from where it stands to its end. */
export interface PurserRun extends AsyncIterable<RunStatus> {
  readonly runId: string
  readonly name: string
  /** False when the name was given before, and this is the run that has it. */
  readonly isNew: boolean
  /** How it stands at its end, however it ended; rejects with `RunFailure` when that cannot be read. */
  readonly done: () => Promise<RunStatus>
  readonly status: () => Promise<RunStatus>
  /** Sends nothing more until it is resumed; what was sent is settled. */
  readonly pause: (reason: string) => Promise<RunStatus>
  readonly resume: () => Promise<RunStatus>
  /** Sends nothing more, ever; what was sent is settled, the rest is not started. */
  readonly cancel: (reason: string) => Promise<RunStatus>
  /**
   * Late rows for a run that is over: those whose identity it does not have are planned under the caps that are open, and charged. A row that
   * it has with other terms refuses them all (`TermsChanged`).
   */
  readonly extend: (rows: RunInput["rows"]) => Promise<RunStatus>
}

const kinds: Readonly<Record<string, Exclude<keyof RunCounts, "rows">>> = {
  staged: "open",
  planned: "open",
  claimed: "open",
  attached: "open",
  succeeded: "succeeded",
  declined: "declined",
  rejected: "rejected",
  processing: "processing",
  requires_action: "requiresAction"
}

/** A run in the words of this page. */
export const statusOf = ({ counted, run: { detail, name, runId, state } }: RunView): RunStatus => {
  const counts = { rows: 0, open: 0, succeeded: 0, declined: 0, rejected: 0, processing: 0, requiresAction: 0, other: 0 }
  const received: Record<string, bigint> = {}
  for (const total of counted) {
    counts.rows += total.rows
    counts[kinds[total.state] ?? "other"] += total.rows
    received[total.currency] = (received[total.currency] ?? 0n) + total.receivedMinor
  }
  return { runId, name, state, counts, receivedMinor: Object.fromEntries(Object.entries(received).map(([currency, sum]) => [currency, minorUnits(sum)])), detail }
}

const chunkSize = 500
const decodeOptions = Schema.decodeUnknownEffect(Schema.toCodecJson(RunOptions))
const readOptions = (options: unknown) => Effect.mapError(decodeOptions(options), ({ message }) => new InvalidInput({ detail: message }))

const isSource = (rows: unknown) => typeof rows === "object" && rows !== null && (Symbol.iterator in rows || Symbol.asyncIterator in rows)
const isAsync = (rows: RunInput["rows"]): rows is AsyncIterable<ChargeInput> => Symbol.asyncIterator in rows

/** The rows in order; what the program's own iterator throws is told as what it is. */
const rowsOf = (input: Pick<RunInput, "name" | "rows">, labels: PeriodLabels, early: ReadonlySet<string>): Stream.Stream<ReadonlyArray<RunRow>, InvalidInput> => {
  let line = 0
  const { rows } = input
  const source = isAsync(rows)
    ? Stream.fromAsyncIterable(rows, (cause) => new InvalidInput({ detail: `the rows of "${input.name}" failed after ${line}: ${String(cause)}` }))
    : Stream.fromIterable(rows)
  return source.pipe(
    Stream.mapEffect((row) =>
      Effect.gen(function*() {
        line += 1
        const read = yield* Effect.mapError(readCharge(row, labels), ({ detail }) => new InvalidInput({ detail: `row ${line}: ${detail}` }))
        const request = early.has(read.billingPeriod) ? new ChargeRequest({ ...read, allowFuture: true }) : read
        return { line, chargeKey: request.chargeKey, request }
      })),
    Stream.grouped(chunkSize)
  )
}

/** Refuses rows that the run of this name does not have, or has with other terms: answering it would leave them out without a word. Only those that it does not have may be late. */
const sameRows = Effect.fnUntraced(function*<E, R>({ name }: RunRecord, differences: Effect.Effect<RowDifferences, E, R>): Effect.fn.Return<void, InvalidInput | E, R> {
  const { changed, late } = yield* differences
  if (changed.length > 0) {
    return yield* new InvalidInput({
      detail: `the run "${name}" is there already, and has ${changed.length} of these rows with other terms (the first is row ${changed[0]!}): give them as it has them; what is to be charged besides needs another item`
    })
  }
  if (late.length > 0) {
    return yield* new InvalidInput({
      detail: `the run "${name}" is there already, and ${late.length} of these rows are not among its own (the first is row ${late[0]!}): extend(rows) adds late rows, another name is another run`
    })
  }
})

const checkSource = (rows: unknown) =>
  isSource(rows) ? Effect.void : Effect.fail(new InvalidInput({ detail: "rows must be an array, or anything else that can be iterated" }))

/** Plans the rows and starts the run, or answers the one that has the name. */
export const startRun = Effect.fn("PurserRun.start")(function*(
  input: RunInput,
  labels: PeriodLabels
): Effect.fn.Return<{ readonly runId: string; readonly isNew: boolean }, RunFailure, BillingRun | RunLedger | RunRegistry | Runs> {
  const registry = yield* RunRegistry
  const runs = yield* Runs
  yield* onlyFieldsOf.run(input)
  if (typeof input.name !== "string" || input.name === "") return yield* new InvalidInput({ detail: "a run needs a name" })
  yield* readTexts({}, { actor: input.actor })
  yield* checkSource(input.rows)
  const allowPeriods = yield* Effect.forEach(yield* readList(input.allowPeriods, "allowPeriods"), (text) => readPeriod(text, labels))
  const rows = rowsOf(input, labels, new Set(allowPeriods))
  const known = yield* registry.find(input.name)
  if (known !== undefined) return yield* Effect.as(sameRows(known, compareRows(known.runId, rows)), { runId: known.runId, isNew: false })
  const expected = yield* Effect.forEach(yield* readList(input.expected, "expected"), ({ billingPeriod, currency, expectedMinor, namespace }) =>
    Effect.all({
      billingPeriod: readPeriod(billingPeriod, labels),
      currency: readCurrency(currency),
      expectedMinor: Effect.map(readTotal(expectedMinor), String),
      namespace: Effect.succeed(namespace ?? defaultNamespace)
    }))
  const { actor = "program", closePeriod = false, concurrency, name, overCap = "refuse" } = input
  // A plain program has no reader of the processor's account beside it; `purser reconcile` compares.
  const options = { allowPeriods, expected, overCap, closePeriod, reconcile: false, ...(concurrency === undefined ? {} : { concurrency }) }
  const read = yield* readOptions(options)
  const runId = yield* newRunId
  yield* (yield* BillingRun).plan({ runId, source: name, rows, decide: decideFor(read), overCap })
  const { isNew, run } = yield* Effect.catchTag(
    runs.start({ name, definition: stagedDefinition, params: null, options, actor, plannedAs: runId }),
    "SchemaError",
    ({ message }) => Effect.fail(new InvalidInput({ detail: message }))
  )
  // Somebody else gave the name while these rows were planned.
  if (!isNew) yield* sameRows(run, comparePlanned(run.runId, runId))
  return { runId: run.runId, isNew }
})

/** Plans late rows behind those of a run that is over, and opens its next round. */
export const extendRun = Effect.fn("PurserRun.extend")(function*(
  runId: string,
  rows: RunInput["rows"],
  labels: PeriodLabels
): Effect.fn.Return<void, RunFailure, BillingRun | RunLedger | RunRegistry | Runs> {
  yield* checkSource(rows)
  const run = yield* (yield* RunRegistry).find(runId)
  if (run === undefined) return yield* new RunError({ reason: new UnknownRun({ run: runId }) })
  const { definition, name, round, state } = run
  if (!isRunOver(state) || definition !== stagedDefinition) {
    const stands = isRunOver(state) ? `made by the definition "${definition}"` : state
    return yield* new RunError({ reason: new RunStateRefused({ run: name, state: stands, act: "extended" }) })
  }
  const options = yield* readOptions(run.options)
  yield* (yield* BillingRun).plan({
    runId: `${runId}/${round + 1}`,
    source: name,
    rows: rowsOf({ name, rows }, labels, new Set(options.allowPeriods)),
    // What was expected of the first rows was met by them: late ones have to fit under the cap that is open.
    decide: decideFor(RunOptions.make({ ...options, expected: [] })),
    overCap: options.overCap,
    extends: runId
  })
  // The same rows again, when they are all settled, are no round.
  if ((yield* (yield* RunLedger).pending(runId, 0, 1)).length > 0) yield* (yield* Runs).extend({ run: runId, actor: "program" })
})

/** What is told of a run that is over. */
export const isOver = ({ state }: RunStatus): boolean => isRunOver(state)
