/**
 * The contract of the list of schedules: which run is to be started when. It holds wishes and starts nothing; runners read it.
 */
import { Context, Effect, Layer } from "effect"
import type { LedgerError } from "./LedgerError.ts"

/** One schedule. */
export interface RunSchedule {
  readonly name: string
  /** Five or six fields, as in crontab. */
  readonly cron: string
  /** An IANA time zone, in which the fields are read. */
  readonly zone: string
  readonly definition: string
  readonly params: unknown
  readonly options: unknown
  readonly actor: string
}

/** The list. Every method needs nothing and fails with `LedgerError` only. */
export class RunSchedules extends Context.Service<RunSchedules, {
  /** Puts a schedule on the list, in place of one of its name. */
  readonly put: (schedule: RunSchedule) => Effect.Effect<void, LedgerError>
  /** Takes a schedule off the list; answers whether it was there. */
  readonly remove: (name: string) => Effect.Effect<boolean, LedgerError>
  /** All of them, by name. */
  readonly list: Effect.Effect<ReadonlyArray<RunSchedule>, LedgerError>
}>()("@purser/core/RunSchedules") {
  /** A list in memory. */
  static readonly layerMemory: Layer.Layer<RunSchedules> = Layer.sync(RunSchedules, () => {
    const schedules = new Map<string, RunSchedule>()
    return {
      put: (schedule) => Effect.sync(() => void schedules.set(schedule.name, schedule)),
      remove: (name) => Effect.sync(() => schedules.delete(name)),
      list: Effect.sync(() => [...schedules.values()].sort((a, b) => a.name < b.name ? -1 : 1))
    }
  })
}
