/** The flags of `purser doctor`. */
import { parsePeriod } from "@purser/core"
import { Effect, Option, Result } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { refused } from "../CommandFailed.ts"
import { periodLabels } from "./periodLabels.ts"

/** `purser doctor [PERIOD]` */
export const doctorCommand = Command.make("doctor", {
  period: Argument.String("PERIOD").pipe(Argument.withDescription("The period that is to be billed: its caps are checked"), Argument.optional),
  for: Flag.Literals("for", ["refunds", "webhooks", "reconcile"]).pipe(
    Flag.withDescription("What the key is used for beside charging; may be repeated"),
    Flag.atLeast(0)
  ),
  json: Flag.Boolean("json").pipe(Flag.withDescription("Print one JSON object"), Flag.withDefault(false))
}, Effect.fnUntraced(function*(given) {
  const labels = yield* periodLabels
  const period = Option.map(given.period, (text) => parsePeriod(text, { labels }))
  if (Option.isSome(period) && Result.isFailure(period.value)) return yield* refused(period.value.failure.message)
  const { doctor } = yield* Effect.promise(() => import("../handlers/doctor.ts"))
  return yield* doctor({
    period: Option.isSome(period) && Result.isSuccess(period.value) ? period.value.success : undefined,
    uses: given.for,
    json: given.json
  })
})).pipe(
  Command.withDescription("Check the key and its permissions, the clocks, the database, the sockets and the caps; change and charge nothing"),
  Command.withExamples([
    { command: "purser doctor 2026-07", description: "Before a run" },
    { command: "purser doctor --for refunds --for reconcile", description: "A key that does more than charge" }
  ])
)
