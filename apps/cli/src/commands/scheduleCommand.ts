/** The flags of `purser schedule`. */
import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { actorFlag } from "./recordFlags.ts"
import { checkName, optionFlags, readOptions, readSource, sourceFlags } from "./runsCommand.ts"

const load = Effect.promise(() => import("../handlers/schedules.ts"))
const name = Argument.String("NAME").pipe(Argument.withDescription("The schedule's name; its runs are called NAME/2026-08-01T06:00:00"))
const json = Flag.Boolean("json").pipe(Flag.withDescription("Print JSON"), Flag.withDefault(false))

/** `purser schedule …` */
export const scheduleCommand = Command.make("schedule", { json }, Effect.fnUntraced(function*({ json }) {
  return yield* (yield* load).listSchedules(json)
})).pipe(
  Command.withDescription("Show the schedules by which runners start billing runs, put one on the list, or take one off"),
  Command.withSubcommands([
    Command.make("put", {
      name,
      cron: Flag.String("cron").pipe(Flag.withDescription("When: minute, hour, day, month, weekday, as in crontab; or six fields, with seconds in front")),
      zone: Flag.String("zone").pipe(Flag.withDescription("The time zone of these fields, such as Europe/Berlin"), Flag.withDefault("UTC")),
      ...sourceFlags, ...optionFlags,
      actor: actorFlag
    }, Effect.fnUntraced(function*(given) {
      yield* checkName("a schedule's name", given.name)
      const options = yield* readOptions(given)
      const source = yield* readSource(given, options.allowPeriods)
      return yield* (yield* load).putSchedule({ name: given.name, cron: given.cron, zone: given.zone, ...source, options, actor: given.actor })
    })).pipe(
      Command.withDescription("Start a run at these times, in place of what the schedule said before"),
      Command.withExamples([
        { command: "purser schedule put monthly --cron '0 6 1 * *' --zone Europe/Berlin --file '/data/invoices-{period}.csv'", description: "On the first of each month, the file of the month before" },
        { command: "purser schedule put usage --cron '30 2 * * *' --query \"select * from invoices where due_on = \\$1::date\"", description: "Every night, what is due on the day" }
      ])
    ),
    Command.make("remove", { name }, Effect.fnUntraced(function*({ name }) {
      return yield* (yield* load).removeSchedule(name)
    })).pipe(Command.withDescription("Start no more runs by this schedule; those that were started go on"))
  ])
)
