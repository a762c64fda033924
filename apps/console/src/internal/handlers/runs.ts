/**
 * Runs, and the switch that stops charging. The register of runs knows names, states and acts; the run book and the ledger
 * know the numbers. A run of which the register does not know is stopped where it was begun, or by the switch.
 */
import { ChargePause, isRunOver, OperatorTrail, type RunEvent, type RunLine, RunPace, type RunRecord, RunRegistry, RunStats, type RunView, SpendCap, standingOf, WorkerBook, WorkerLife } from "@purser/core"
import { actsOn, isGoneOn } from "@purser/engine"
import { Cache, Clock, Duration, Effect, Exit, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ConsoleApi } from "../../api/ConsoleApi.ts"
import { ActRefused, type Away, NotThere } from "../../api/ConsoleError.ts"
import type { Run } from "../../api/Shapes.ts"
import { type RunDeed, RunDesk } from "../../RunDesk.ts"
import { away, changedOr, makePerform } from "../perform.ts"

const slices = 60
const openStates = new Set(["staged", "planned", "claimed", "attached"])
/** Runs that a person may still have to do with. */
const liveStates = ["waiting", "planned", "running", "paused", "canceling", "interrupted"] as const
const liveMax = 200
/** Rows that have not moved for so long do not move by themselves. */
const stillMs = 20_000

/** Why a run that is not over takes fewer acts than one would expect. */
const whyNotOf = (record: RunRecord | undefined, line: RunLine): string | null => {
  if (record === undefined) return line.finishedAtMs === null ? "the register does not know this run: it is stopped where it was begun, or by the switch" : null
  switch (standingOf(record)) {
    case "canceling":
      return "it is being given up: what was sent settles, and nothing more is sent"
    case "interrupted":
      return isGoneOn(record) ? null : "the command that had it in hand is gone, so that nobody would pause or resume it: the same command goes on with it, and nothing is charged twice"
    default:
      return null
  }
}

const runOf = (line: RunLine, record: RunRecord | undefined, book: Parameters<typeof WorkerLife.abandoned>[1]): Run => ({
  ...line,
  name: record?.name ?? null,
  state: record === undefined ? line.state : standingOf(record),
  step: record?.step ?? null,
  detail: record?.detail ?? null,
  runner: record?.runner ?? null,
  finishedAtMs: record === undefined ? line.finishedAtMs : record.endedAtMs ?? line.finishedAtMs,
  acts: record === undefined ? [] : actsOn(record),
  whyNot: whyNotOf(record, line),
  abandoned: record === undefined ? null : WorkerLife.abandoned(record, book)
})

/** Acts after which a run's rows go on. */
const goesOn = new Set<RunEvent["act"]>(["running", "taken", "extended"])

/** A run that is registered and has no rows yet. */
const waitingLine = (record: RunRecord): RunLine => ({
  runId: record.runId, source: record.definition, state: record.state, begunAtMs: record.createdAtMs, plannedAtMs: null, finishedAtMs: record.endedAtMs, rows: 0, present: 0
})

/** The handlers of the group. */
export const layer = HttpApiBuilder.group(ConsoleApi, "runs", Effect.fnUntraced(function*(handlers) {
  const stats = yield* RunStats
  const registry = yield* RunRegistry
  const pause = yield* ChargePause
  const cap = yield* SpendCap
  const trail = yield* OperatorTrail
  const perform = yield* makePerform
  const book = yield* Effect.cachedWithTTL(Effect.mapError((yield* WorkerBook).list, away), Duration.seconds(1))

  /** When the run went on last, by its own acts or by the switch. */
  const wentOnAt = (events: ReadonlyArray<RunEvent>) =>
    Effect.map(Effect.mapError(trail.pauseEvents(10), away), (thrown) =>
      Math.max(0, ...events.flatMap(({ act, atMs }) => goesOn.has(act) ? [atMs] : []), ...thrown.flatMap(({ act, atMs }) => act === "resumed" ? [atMs] : [])))

  interface Seen {
    readonly view: RunView | undefined
    readonly events: ReadonlyArray<RunEvent>
    readonly wentOnAtMs: number
    readonly tookMs: number
  }
  // One look reads all rows of a run: the longer it takes, the longer its answer is good.
  const views = yield* Cache.makeWith(
    Effect.fnUntraced(function*(runId: string): Effect.fn.Return<Seen, Away> {
      const from = yield* Clock.currentTimeMillis
      const events = yield* Effect.mapError(registry.events(runId), away)
      const wentOnAtMs = yield* wentOnAt(events)
      const view = yield* Effect.mapError(stats.view(runId, slices, wentOnAtMs), away)
      return { view, events, wentOnAtMs, tookMs: (yield* Clock.currentTimeMillis) - from }
    }),
    { capacity: 64, timeToLive: (exit) => Duration.millis(Exit.isSuccess(exit) ? Math.max(400, exit.value.tookMs * 5) : 0) }
  )

  const desk = yield* Effect.serviceOption(RunDesk)
  const noDesk = new ActRefused({ message: "this console has no way to the runners: use the command" })
  const act = (deed: RunDeed, runId: string, reason: string) =>
    perform({ act: `${deed} run`, subject: runId, reason }, Effect.fnUntraced(function*(actor) {
      if (Option.isNone(desk)) return yield* noDesk
      const before = yield* Effect.mapError(registry.find(runId), away)
      const run = yield* desk.value.act(deed, runId, actor, reason)
      yield* Cache.invalidate(views, run.runId)
      return changedOr(before?.state !== run.state, `${run.name} is ${run.state}`, `${run.name} was ${run.state} before`)
    }))

  return handlers
    .handle("list", Effect.fnUntraced(function*({ query }) {
      const most = query.limit ?? 50
      const lines = yield* Effect.mapError(stats.list(query.before ?? null, most), away)
      const records = new Map((yield* Effect.mapError(registry.list({ limit: 500 }), away)).map((record) => [record.runId, record]))
      const workers = yield* book
      const known = new Set(lines.map(({ runId }) => runId))
      // Of an older page the register is asked run by run.
      const older = yield* Effect.forEach(lines.filter(({ runId }) => !records.has(runId)), ({ runId }) => Effect.mapError(registry.find(runId), away), { concurrency: 4 })
      for (const record of older) if (record !== undefined) records.set(record.runId, record)
      const beyond = query.before === undefined
        ? (yield* Effect.mapError(registry.list({ states: liveStates, limit: liveMax }), away)).filter((record) => !known.has(record.runId) && !isGoneOn(record))
        : []
      const standing = new Map((yield* Effect.mapError(stats.list(null, liveMax, beyond.map(({ runId }) => runId)), away)).map((line) => [line.runId, line]))
      const runs = [
        ...lines.map((line) => runOf(line, records.get(line.runId), workers)),
        ...beyond.flatMap((record) => {
          const line = standing.get(record.runId) ?? (record.state === "waiting" ? waitingLine(record) : undefined)
          return line === undefined ? [] : [runOf(line, record, workers)]
        })
      ]
      return {
        runs: runs.toSorted((a, b) => b.begunAtMs - a.begunAtMs),
        next: lines.length < most ? null : lines.at(-1)?.begunAtMs ?? null,
        pauses: yield* Effect.mapError(pause.inForce, away),
        atMs: yield* Clock.currentTimeMillis
      }
    }))
    .handle("view", Effect.fnUntraced(function*({ params }) {
      // A name leads to a run as well as its id does.
      const record = yield* Effect.mapError(registry.find(params.runId), away)
      const { events, view, wentOnAtMs } = yield* Cache.get(views, record?.runId ?? params.runId)
      if (view === undefined && record === undefined) return yield* new NotThere({ message: "there is no such run" })
      const line = view?.run ?? waitingLine(record!)
      const groups = view?.groups ?? []
      const open = groups.reduce((sum, { rows, state }) => openStates.has(state) ? sum + rows : sum, 0)
      const settled = groups.reduce((sum, group) => sum + group.settledLastMinute, 0)
      const atMs = view?.atMs ?? (yield* Clock.currentTimeMillis)
      const settledWithinMs = atMs - RunPace.fromMs(atMs, [view?.firstClaimedAtMs, wentOnAtMs])
      const settledPerSecond = RunPace.perSecond(settled, settledWithinMs)
      const scopes = new Set(groups.map(({ billingPeriod, currency, namespace }) => JSON.stringify([namespace, billingPeriod, currency])))
      const caps = yield* Effect.mapError(cap.report(), away)
      const pauses = yield* Effect.mapError(pause.inForce, away)
      const standing = record === undefined ? undefined : standingOf(record)
      const isSent = pauses.length === 0 && (standing === undefined ? line.finishedAtMs === null : standing !== "paused" && standing !== "canceling" && !isRunOver(standing))
      const workers = yield* book
      const known = runOf(line, record, workers)
      const movedAtMs = Math.max(view?.lastMovedAtMs ?? 0, line.plannedAtMs ?? line.begunAtMs, wentOnAtMs)
      const unserved = record === undefined || !isSent || open === 0 || atMs - movedAtMs < stillMs ? null : WorkerLife.unserved(record, workers)
      const run = { ...known, abandoned: known.abandoned ?? unserved }
      return {
        run,
        groups,
        slices: view?.slices ?? [],
        caps: caps.filter(({ billingPeriod, currency, namespace }) => scopes.has(JSON.stringify([namespace, billingPeriod, currency]))),
        events,
        open,
        forPerson: groups.reduce((sum, { rows, state }) => state === "quarantined" ? sum + rows : sum, 0),
        settledPerSecond,
        settledWithinMs,
        leftMs: isSent && run.abandoned === null ? RunPace.leftMs(open, settledPerSecond) : null,
        held: open > 0 && (standing === "paused" || pauses.length > 0 && (standing === undefined || !isRunOver(standing))),
        pauses,
        atMs
      }
    }))
    .handle("pause", ({ params, payload }) => act("pause", params.runId, payload.reason))
    .handle("resume", ({ params, payload }) => act("resume", params.runId, payload.reason))
    .handle("cancel", ({ params, payload }) => act("cancel", params.runId, payload.reason))
    .handle("pauseCharging", ({ payload: { reason } }) =>
      perform({ act: "pause", subject: "charging", reason }, (actor) =>
        Effect.mapBoth(pause.pause({ cause: "person", actor, reason }), {
          onFailure: away,
          onSuccess: (changed) => changedOr(changed, "charging is paused", "charging was paused before; that pause stands")
        })))
    .handle("resumeCharging", ({ payload: { reason } }) =>
      perform({ act: "resume", subject: "charging", reason }, (actor) =>
        Effect.mapBoth(Effect.all([pause.resume({ cause: "person", actor, reason }), pause.resume({ cause: "outage", actor, reason })]), {
          onFailure: away,
          onSuccess: (ended) => changedOr(ended.includes(true), "charging goes on", "charging was not paused")
        })))
}))
