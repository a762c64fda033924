/** `purser schedule`: which runs are started by the clock. Runners follow the list. */
import { type RunSchedule, RunSchedules } from "@purser/core"
import { cronOf } from "@purser/engine"
import { Stores } from "@purser/purser"
import { Clock, Cron, DateTime, Effect, Result } from "effect"
import { refused } from "../CommandFailed.ts"
import { out } from "../ui/Output.ts"
import { table } from "../ui/table.ts"

const onStores = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provide(effect, Stores.layerConfig)

const hasSeconds = ({ cron }: RunSchedule) => cron.trim().split(/\s+/).length === 6

/** The next firing in the schedule's own zone, and in UTC. */
const nextOf = (schedule: RunSchedule, nowMs: number) =>
  Result.map(cronOf(schedule), (cron) => {
    const next = DateTime.makeUnsafe(Cron.next(cron, new Date(nowMs)))
    // Without seconds in the fields a firing is at a minute.
    const shown = (iso: string) => iso.slice(0, hasSeconds(schedule) ? 19 : 16).replace("T", " ")
    return `${shown(DateTime.formatIsoZoned(DateTime.setZoneNamedUnsafe(next, schedule.zone)))} (${shown(DateTime.formatIso(next))} UTC)`
  })

/** Puts a schedule on the list. */
export const putSchedule = (schedule: RunSchedule) =>
  Effect.gen(function*() {
    const next = nextOf(schedule, yield* Clock.currentTimeMillis)
    if (Result.isFailure(next)) return yield* refused(next.failure.message)
    yield* (yield* RunSchedules).put(schedule)
    yield* out(`${schedule.name}: next ${next.success}`)
  }).pipe(onStores)

/** Takes a schedule off the list. */
export const removeSchedule = (name: string) =>
  Effect.gen(function*() {
    if (!(yield* (yield* RunSchedules).remove(name))) return yield* refused(`there is no schedule "${name}"`)
    yield* out(`${name} is removed`)
  }).pipe(onStores)

/** Prints the list. */
export const listSchedules = (json: boolean) =>
  Effect.gen(function*() {
    const list = yield* (yield* RunSchedules).list
    const nowMs = yield* Clock.currentTimeMillis
    if (json) return yield* out(JSON.stringify(list))
    yield* out(list.length === 0 ? "no schedules" : table(
      ["schedule", "cron", "zone", "next", "from"],
      list.map((one) => [one.name, one.cron, one.zone, Result.getOrElse(nextOf(one, nowMs), ({ message }) => message), one.definition])
    ))
  }).pipe(onStores)
