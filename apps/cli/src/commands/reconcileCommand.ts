/** The flags of `purser reconcile` and `purser audit`. */
import { type BillingPeriod, parsePeriod, periodDays } from "@purser/core"
import { Config, Duration, Effect, Option, Result } from "effect"
import { Command, Flag } from "effect/cli"
import { refused } from "../CommandFailed.ts"
import { periodLabels } from "./periodLabels.ts"

const json = Flag.Boolean("json").pipe(Flag.withDescription("Print JSON"), Flag.withDefault(false))
const moment = (name: string, what: string) => Flag.Date(name).pipe(Flag.withDescription(what), Flag.optional)

const readDuration = Effect.fnUntraced(function*(flag: string, text: string) {
  const duration = Duration.fromInput(text as Duration.Input)
  if (Option.isNone(duration) || !Number.isFinite(Duration.toMillis(duration.value)) || Duration.toMillis(duration.value) < 0) {
    return yield* refused(`--${flag} "${text}" is no duration, such as "1 hour"`)
  }
  return Duration.toMillis(duration.value)
})

/** The earliest of what is known: nothing of the period is older, unless somebody says so. */
const sinceOf = Effect.fnUntraced(function*(period: BillingPeriod, given: Option.Option<Date>) {
  if (Option.isSome(given)) return given.value.getTime()
  const restore = yield* Config.option(Config.Date("PURSER_RESTORE_POINT"))
  const begins = periodDays(period)?.firstDayMs
  const known = [...(begins === undefined ? [] : [begins - 14 * 3_600_000]), ...(Option.isSome(restore) ? [restore.value.getTime()] : [])]
  if (known.length === 0) return yield* refused(`${period} has no first day: say with --since from when on objects are to be listed`)
  return Math.min(...known)
})

/** `purser reconcile` */
export const reconcileCommand = Command.make("reconcile", {
  period: Flag.String("period").pipe(Flag.withDescription("The billing period")),
  namespace: Flag.String("namespace").pipe(Flag.withDescription("Only this namespace (default: all)"), Flag.optional),
  since: moment("since", "List objects made from here on (default: the period's first day, or PURSER_RESTORE_POINT if that is earlier)"),
  until: moment("until", "List objects made until here (default: now)"),
  dryRun: Flag.Boolean("dry-run").pipe(Flag.withDescription("Tell what would be repaired, and repair nothing"), Flag.withDefault(false)),
  report: Flag.String("report").pipe(Flag.withDescription("Write every difference to this file, one JSON object a line"), Flag.optional),
  orphanAge: Flag.String("orphan-age").pipe(
    Flag.withDescription("Give up unpaid objects that no row names when they are older than this"),
    Flag.withDefault("1 hour")
  ),
  methods: Flag.Literals("methods", ["named", "default"]).pipe(
    Flag.withDescription("Whether a forgotten payment's row asks for the method that was used, or for the customer's default one"),
    Flag.withDefault("named" as const)
  ),
  json
}, Effect.fnUntraced(function*(given) {
  const period = parsePeriod(given.period, { labels: yield* periodLabels })
  if (Result.isFailure(period)) return yield* refused(period.failure.message)
  const sinceMs = yield* sinceOf(period.success, given.since)
  const untilMs = Option.getOrUndefined(given.until)?.getTime()
  if (untilMs !== undefined && untilMs < sinceMs) return yield* refused("--until is before --since")
  const { reconcile } = yield* Effect.promise(() => import("../handlers/reconcile.ts"))
  return yield* reconcile({
    billingPeriod: period.success,
    namespace: Option.getOrUndefined(given.namespace),
    sinceMs,
    untilMs,
    dryRun: given.dryRun,
    orphanAgeMs: yield* readDuration("orphan-age", given.orphanAge),
    methods: given.methods
  }, { report: Option.getOrUndefined(given.report), json: given.json })
})).pipe(
  Command.withDescription("Compare a period in the ledger with Stripe, both ways, and repair what evidence allows"),
  Command.withExamples([
    { command: "purser reconcile --period 2026-07 --dry-run", description: "Tell the differences; the status is 2 when there are any" },
    { command: "purser reconcile --period 2026-07 --since 2026-07-30T12:00:00Z", description: "After the ledger was restored from a backup of that moment, before anything is charged" }
  ])
)

/** `purser audit` */
export const auditCommand = Command.make("audit", {
  since: Flag.Date("since").pipe(Flag.withDescription("Look at charges made from here on")),
  until: moment("until", "Look at charges made until here (default: now)"),
  window: Flag.String("window").pipe(
    Flag.withDescription("Two equal charges of one customer are suspect when they are no further apart; shorter than the shortest billing period"),
    Flag.withDefault("5 days")
  ),
  proposal: Flag.String("proposal").pipe(Flag.withDescription("Write a refund proposal to this file, one JSON object a line"), Flag.optional),
  json
}, Effect.fnUntraced(function*(given) {
  const windowMs = yield* readDuration("window", given.window)
  if (windowMs < 1000 || windowMs > 366 * 86_400_000) return yield* refused("--window must be from 1 second to 366 days")
  const untilMs = Option.getOrUndefined(given.until)?.getTime()
  if (untilMs !== undefined && untilMs < given.since.getTime()) return yield* refused("--until is before --since")
  const { audit } = yield* Effect.promise(() => import("../handlers/audit.ts"))
  return yield* audit({ sinceMs: given.since.getTime(), untilMs, windowMs }, { proposal: Option.getOrUndefined(given.proposal), json: given.json })
})).pipe(
  Command.withDescription("Look for likely double charges in a Stripe account, whoever made them; nothing is changed"),
  Command.withExamples([
    { command: "purser audit --since 2026-07-01 --proposal refunds.ndjson", description: "Needs a key that may read Charges and Events, and no database" }
  ])
)
