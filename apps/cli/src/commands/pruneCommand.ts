/** The flags of `purser prune`. */
import { Duration, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { refused } from "../CommandFailed.ts"

const age = (name: string, what: string, days: string) =>
  Flag.String(name).pipe(Flag.withDescription(`Forget ${what} that are older than this`), Flag.withDefault(days))

const readAge = Effect.fnUntraced(function*(flag: string, text: string) {
  const duration = Duration.fromInput(text as Duration.Input)
  if (Option.isNone(duration) || !Number.isFinite(Duration.toMillis(duration.value)) || Duration.toMillis(duration.value) < 0) {
    return yield* refused(`--${flag} "${text}" is no duration, such as "30 days"`)
  }
  return duration.value
})

/** `purser prune` */
export const pruneCommand = Command.make("prune", {
  engine: age("engine-after", "executions of the workflow engine that are over,", "30 days"),
  runs: age("runs-after", "runs whose charges are all settled,", "400 days"),
  dunning: age("dunning-after", "dunning cases that ended", "400 days"),
  webhooks: age("webhooks-after", "webhook events that were dealt with", "90 days"),
  apply: Flag.Boolean("apply").pipe(Flag.withDescription("Delete them; without this they are only counted"), Flag.withDefault(false)),
  json: Flag.Boolean("json").pipe(Flag.withDescription("Print JSON"), Flag.withDefault(false))
}, Effect.fnUntraced(function*(given) {
  const ages = {
    engine: yield* readAge("engine-after", given.engine),
    runs: yield* readAge("runs-after", given.runs),
    dunning: yield* readAge("dunning-after", given.dunning),
    webhooks: yield* readAge("webhooks-after", given.webhooks)
  }
  const { prune } = yield* Effect.promise(() => import("../handlers/prune.ts"))
  return yield* prune(ages, given)
})).pipe(
  Command.withDescription("Count what may be forgotten by its age, and forget it with --apply; charges, their trail and everything unsettled stay"),
  Command.withExamples([
    { command: "purser prune", description: "What would be deleted" },
    { command: "purser prune --engine-after '14 days' --apply", description: "Keep two weeks of the workflow engine's tables" }
  ])
)
