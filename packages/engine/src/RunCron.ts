/**
 * Starts runs by the clock: the schedules of the list, each as a cron job of the cluster, in its own time zone. Every firing
 * has a name of its own, so that a run is started once, however many runners there are and whoever else starts it.
 *
 * A schedule that was changed or removed fires into the void: whether it still stands is asked when it fires.
 */
import { type RunSchedule, RunSchedules } from "@purser/core"
import { Config, Context, Cron, DateTime, Duration, Effect, Layer, Logger, Result, Schedule, Schema, type Scope } from "effect"
import { ClusterCron, type Sharding } from "effect/cluster"
import { clusterLoggers } from "./ClusterLog.ts"
import { surely } from "./internal/runControl.ts"
import { Runs } from "./Runs.ts"
import { definitionsGroup } from "./RunWorkflow.ts"

/** A schedule whose fields or zone cannot be read. */
export class BadSchedule extends Schema.TaggedError<BadSchedule>("@purser/engine/RunCron/BadSchedule")("BadSchedule", {
  schedule: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `schedule "${this.schedule}": ${this.detail}`
  }
  get isRetryable() {
    return false
  }
}

/** Reads the fields and the zone of a schedule: five as in crontab, or six with seconds in front. Fields that no day has, such as the 30th of February, are refused too. */
export const cronOf = ({ cron, name, zone }: Pick<RunSchedule, "name" | "cron" | "zone">): Result.Result<Cron.Cron, BadSchedule> => {
  const bad = (detail: string) => new BadSchedule({ schedule: name, detail: `"${cron}" in ${zone}: ${detail}` })
  const given = cron.trim().split(/\s+/).length
  if (given !== 5 && given !== 6) return Result.fail(bad(`five fields are expected (minute, hour, day, month, weekday), or six with seconds in front, not ${given}`))
  return Result.flatMap(Result.mapError(Cron.parse(cron, zone), ({ message }) => bad(message)), (parsed) =>
    Result.try({ try: () => Cron.next(parsed, new Date(0)), catch: () => bad("no day has these fields") }).pipe(Result.map(() => parsed)))
}

const settings = Config.all({
  every: Config.Duration("PURSER_SCHEDULE_POLL").pipe(Config.withDefault(Duration.seconds(10))),
  /** After an outage of all runners a firing is made up for, unless it is older. */
  tooOld: Config.Duration("PURSER_SCHEDULE_TOO_OLD").pipe(Config.withDefault(Duration.days(7)))
})

const keyOf = ({ cron, name, zone }: RunSchedule) => JSON.stringify([name, cron, zone])
/** The local time of a firing: names are read by people in the zone of the schedule. */
const localTime = (at: DateTime.Utc, zone: string) => DateTime.formatIsoZoned(DateTime.setZoneNamedUnsafe(at, zone)).slice(0, 19)

const jobOf = (schedule: RunSchedule, cron: Cron.Cron, tooOld: Duration.Duration, runs: Runs["Service"], schedules: RunSchedules["Service"]) =>
  ClusterCron.make({
    name: keyOf(schedule),
    cron,
    shardGroup: definitionsGroup,
    calculateNextRunFromPrevious: true,
    skipIfOlderThan: tooOld,
    execute: Effect.gen(function*() {
      const at = yield* ClusterCron.CurrentScheduledTime
      const now = (yield* surely(schedules.list)).find((one) => keyOf(one) === keyOf(schedule))
      if (now === undefined) return
      const local = localTime(at, schedule.zone)
      const params = typeof now.params === "object" && now.params !== null ? { ...now.params, at: local } : now.params
      const { run } = yield* runs.start({
        name: `${schedule.name}/${local}`, definition: now.definition, params, options: now.options as object, actor: `schedule ${schedule.name}`
      })
      yield* Effect.logInfo(`schedule ${schedule.name}: run ${run.runId}`)
    }).pipe(Effect.retry({ while: (error) => error._tag === "LedgerError" && error.isRetryable, schedule: Schedule.spaced("5 seconds") }))
  })

/** Follows the list of schedules for as long as the layer lives. All runners of a database do, and the cluster gives each firing to one. */
export const layerRunCron: Layer.Layer<never, Config.ConfigError, RunSchedules | Runs | Sharding.Sharding> = Layer.effectDiscard(Effect.gen(function*() {
  const { every, tooOld } = yield* settings
  const schedules = yield* RunSchedules
  const runs = yield* Runs
  const services = Context.add(yield* Effect.context<Sharding.Sharding | Scope.Scope>(), Logger.CurrentLoggers, clusterLoggers(yield* Logger.CurrentLoggers))
  const known = new Set<string>()
  yield* surely(schedules.list).pipe(
    Effect.flatMap((list) =>
      Effect.forEach(list.filter((one) => !known.has(keyOf(one))), (schedule) => {
        known.add(keyOf(schedule))
        const cron = cronOf(schedule)
        return Result.isFailure(cron)
          ? Effect.logError(cron.failure.message)
          // In the scope of the process: an entity that leaves a runner would take its shards along.
          : Layer.build(jobOf(schedule, cron.success, tooOld, runs, schedules)).pipe(Effect.provideContext(services))
      }, { discard: true })),
    Effect.andThen(Effect.sleep(every)),
    Effect.forever,
    Effect.forkScoped
  )
}))
