/** The register of runs over a map. */
import { Clock, Effect } from "effect"
import type { RunEvent, RunRecord, RunRegistry, RunStanding } from "../RunRegistry.ts"
import { commandDefinition, goneOnWith } from "./commandDefinition.ts"

const isOver = ({ state }: RunRecord) => state === "canceled" || state === "interrupted" || state === "finished" || state === "failed"
const dayMs = 86_400_000

/** No book of workers is here that would know a runner. */
const standingIn = (record: RunRecord, nowMs: number): RunStanding | undefined => {
  const { definition, detail, endedAtMs, state } = record
  if (!isOver(record)) return definition === commandDefinition ? state as RunStanding : "abandoned"
  const waits = (state === "interrupted" || state === "failed") && endedAtMs !== null && endedAtMs > nowMs - dayMs && detail?.startsWith(goneOnWith) !== true
  return waits ? state : undefined
}

/** What no store of JSON could keep does not pass here either. */
const stored = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null))

export const makeRunRegistryMemory: Effect.Effect<RunRegistry["Service"]> = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const runs = new Map<string, { record: RunRecord; readonly events: Array<RunEvent> }>()
  const now = () => clock.currentTimeMillisUnsafe()
  const found = (nameOrId: string) => runs.get(nameOrId) ?? [...runs.values()].find(({ record }) => record.name === nameOrId)
  const inHand = (digest: string | undefined) =>
    digest === undefined ? undefined : [...runs.values()].find(({ record }) =>
      record.definition === commandDefinition && !isOver(record) && (record.params as { readonly digest?: string }).digest === digest)

  return {
    register: ({ digest, ...run }) =>
      Effect.sync(() => {
        const known = found(run.name) ?? inHand(digest)
        if (known !== undefined) return { run: known.record, isNew: false }
        const record: RunRecord = {
          ...run, params: stored(digest === undefined ? run.params : { ...run.params as object, digest }), options: stored(run.options), round: 1, pauses: 0, runner: run.runner ?? null, step: null, detail: null, counted: [],
          createdAtMs: now(), startedAtMs: run.state === "running" ? now() : null, endedAtMs: null, lostSinceMs: null
        }
        runs.set(run.runId, { record, events: [{ atMs: now(), act: run.state, actor: run.actor, detail: null }] })
        return { run: record, isNew: true }
      }),
    find: (nameOrId) => Effect.sync(() => found(nameOrId)?.record),
    list: ({ limit, states }) =>
      Effect.sync(() =>
        [...runs.values()].map(({ record }) => record).filter(({ state }) => states === undefined || states.includes(state)).toReversed().slice(0, limit)),
    standings: Effect.sync(() => {
      const counted: Partial<Record<RunStanding, number>> = {}
      for (const { record } of runs.values()) {
        const standing = standingIn(record, now())
        if (standing !== undefined) counted[standing] = (counted[standing] ?? 0) + 1
      }
      return counted
    }),
    change: ({ actor, detail, from, runId, to }) =>
      Effect.sync(() => {
        const run = runs.get(runId)
        if (run === undefined || !from.includes(run.record.state)) return undefined
        run.record = {
          ...run.record,
          state: to,
          detail: detail === undefined ? run.record.detail : detail,
          pauses: run.record.pauses + (to === "paused" ? 1 : 0),
          startedAtMs: run.record.startedAtMs ?? (to === "running" ? now() : null),
          endedAtMs: isOver({ ...run.record, state: to }) ? now() : null
        }
        run.events.push({ atMs: now(), act: to, actor, detail: detail ?? null })
        return run.record
      }),
    extend: ({ actor, params, runId }) =>
      Effect.sync(() => {
        const run = runs.get(runId)
        if (run === undefined || !isOver(run.record)) return undefined
        run.record = { ...run.record, state: "waiting", round: run.record.round + 1, params: stored(params), detail: null, endedAtMs: null }
        run.events.push({ atMs: now(), act: "extended", actor, detail: null })
        return run.record
      }),
    note: (runId, { runner, ...note }) =>
      Effect.sync(() => {
        const run = runs.get(runId)
        if (run === undefined) return
        if (runner !== undefined && runner !== run.record.runner) run.events.push({ atMs: now(), act: "taken", actor: runner, detail: null })
        run.record = { ...run.record, ...note, runner: runner ?? run.record.runner }
      }),
    events: (runId) => Effect.sync(() => runs.get(runId)?.events.slice() ?? [])
  }
})
