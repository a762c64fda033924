/** The flags of `purser runs` and its acts. */
import { defaultNamespace, parsePeriod } from "@purser/core"
import { Effect, Option, Result, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { refused } from "../CommandFailed.ts"
import { periodLabels } from "./periodLabels.ts"
import { actorFlag, reasonFlag } from "./recordFlags.ts"

const load = Effect.promise(() => import("../handlers/runs.ts"))
const name = Argument.String("RUN").pipe(Argument.withDescription("The run's name, or its id"))
const json = Flag.Boolean("json").pipe(Flag.withDescription("Print JSON"), Flag.withDefault(false))
const reason = reasonFlag.pipe(Flag.withDescription("Why, for the record"))

/** Where the rows of a run come from. */
export const sourceFlags = {
  query: Flag.String("query").pipe(Flag.withDescription("Rows are those of this SQL query; $1 is the local time of the schedule"), Flag.withMetavar("SQL"), Flag.optional),
  file: Flag.String("file").pipe(Flag.withDescription("Rows are those of this billing file, as runners see it; {period}, {yyyy}, {mm} and {dd} are filled in by the schedule"), Flag.optional),
  definition: Flag.String("definition").pipe(Flag.withDescription("Rows are those of this definition, which your own runners know"), Flag.optional),
  params: Flag.String("params").pipe(Flag.withDescription("What your definition is told"), Flag.withMetavar("JSON"), Flag.withDefault("{}"))
}

/** How a run is dispatched and closed. */
export const optionFlags = {
  expectedTotal: Flag.String("expected-total").pipe(
    Flag.withDescription("What a period's rows should add up to: 2026-07:usd=1000.00; may be repeated"), Flag.withMetavar("PERIOD:CUR=AMOUNT"), Flag.atLeast(0)
  ),
  headroom: Flag.String("headroom").pipe(Flag.withDescription("The cap is the expected total times this factor"), Flag.withDefault("1.10")),
  allowPeriod: Flag.String("allow-period").pipe(Flag.withDescription("Bill this period though it is not over; may be repeated"), Flag.atLeast(0)),
  overCap: Flag.Literals("over-cap", ["refuse", "fits"]).pipe(Flag.withDescription("When the total does not fit under the cap: refuse the run, or charge what fits"), Flag.withDefault("refuse" as const)),
  concurrency: Flag.Int("concurrency").pipe(Flag.withDescription("Requests in flight"), Flag.withDefault(128)),
  reconcile: Flag.Boolean("reconcile").pipe(Flag.withDescription("Compare the periods with Stripe at the end (--no-reconcile leaves it out)"), Flag.withDefault(true)),
  repair: Flag.Boolean("repair").pipe(Flag.withDescription("Repair what that comparison finds, as purser reconcile does (--no-repair tells it alone)"), Flag.withDefault(true)),
  closePeriod: Flag.Boolean("close-period").pipe(Flag.withDescription("Close the caps when every row is settled"), Flag.withDefault(false))
}

/** Names are given back to the shell, and stand in tables and logs. */
export const checkName = (what: string, name: string) =>
  /^[\w.-]{1,60}$/.test(name) ? Effect.void : Effect.fail(refused(`${what} has up to 60 letters, digits, dots, hyphens and underscores`))

interface SourceFlags {
  readonly query: Option.Option<string>
  readonly file: Option.Option<string>
  readonly definition: Option.Option<string>
  readonly params: string
}
const decodeJson = Schema.decodeEffect(Schema.fromJsonString(Schema.Unknown))

/** Reads what {@link sourceFlags} say. */
export const readSource = Effect.fnUntraced(function*(given: SourceFlags, allowPeriods: ReadonlyArray<string>) {
  const [source, ...more] = [
    ...Option.toArray(Option.map(given.query, (sql) => ({ definition: "query", params: { sql } as unknown }))),
    ...Option.toArray(Option.map(given.file, (path) => ({ definition: "file", params: { path, allowPeriods } as unknown }))),
    ...Option.toArray(Option.map(given.definition, (definition) => ({ definition, params: undefined })))
  ]
  if (source === undefined || more.length > 0) return yield* refused("say with one of --query, --file and --definition where the rows come from")
  if (source.params !== undefined) return source
  return yield* Effect.mapBoth(decodeJson(given.params), {
    onSuccess: (params) => ({ ...source, params }),
    onFailure: () => refused("--params is no JSON")
  })
})

/** Reads what {@link optionFlags} say. */
export const readOptions = Effect.fnUntraced(function*(given: {
  readonly expectedTotal: ReadonlyArray<string>
  readonly headroom: string
  readonly allowPeriod: ReadonlyArray<string>
  readonly overCap: "refuse" | "fits"
  readonly concurrency: number
  readonly reconcile: boolean
  readonly repair: boolean
  readonly closePeriod: boolean
}) {
  if (given.concurrency < 1 || given.concurrency > 10_000) return yield* refused("--concurrency must be from 1 to 10000")
  const labels = yield* periodLabels
  const { minorOf, parseExpectedTotal, parseHeadroom } = yield* Effect.promise(() => import("../handlers/expectedTotals.ts"))
  const expected = yield* Effect.forEach(given.expectedTotal, (text) =>
    Effect.flatMap(parseExpectedTotal(text, labels), (one) => {
      const { billingPeriod, currency, decimal } = one
      if (billingPeriod === undefined || currency === undefined) return Effect.fail(refused(`--expected-total ${text}: say the period and the currency, as in 2026-07:usd=1000.00`))
      return Effect.map(minorOf(text, decimal, currency), (expectedMinor) => ({ namespace: defaultNamespace, billingPeriod, currency, expectedMinor: String(expectedMinor) }))
    }))
  const allowPeriods = yield* Effect.forEach(given.allowPeriod, (text) => {
    const period = parsePeriod(text, { labels })
    return Result.isSuccess(period) ? Effect.succeed<string>(period.success) : Effect.fail(refused(`--allow-period: ${period.failure.message}`))
  })
  const { closePeriod, concurrency, overCap, reconcile, repair } = given
  return { expected, allowPeriods, headroomPercent: yield* parseHeadroom(given.headroom), overCap, concurrency, reconcile, repair, closePeriod }
})

const act = (word: "pause" | "cancel", description: string) =>
  Command.make(word, { name, actor: actorFlag, reason }, Effect.fnUntraced(function*(given) {
    return yield* (yield* load).actOnRun(word, given.name, given.actor, given.reason)
  })).pipe(Command.withDescription(description))

/** `purser runs …` */
export const runsCommand = Command.make("runs", {
  state: Flag.Literals("state", ["waiting", "planned", "running", "paused", "canceling", "canceled", "interrupted", "finished", "failed"]).pipe(
    Flag.withDescription("Only runs in this state; may be repeated"), Flag.atLeast(0)
  ),
  limit: Flag.Int("limit").pipe(Flag.withDescription("How many, the newest first"), Flag.withDefault(20)),
  json
}, Effect.fnUntraced(function*({ json, limit, state }) {
  if (limit < 1 || limit > 10_000) return yield* refused("--limit must be from 1 to 10000")
  return yield* (yield* load).listRuns({ states: state, limit, json })
})).pipe(
  Command.withDescription("Show billing runs, start them on runners, and hold, resume, cancel or extend them"),
  Command.withSubcommands([
    Command.make("show", { name, json }, Effect.fnUntraced(function*({ json, name }) {
      return yield* (yield* load).showRun(name, json)
    })).pipe(Command.withDescription("One run, with what happened to it")),
    Command.make("start", {
      name: Argument.String("NAME").pipe(Argument.withDescription("A name that no run has; the same name again charges nobody")),
      ...sourceFlags, ...optionFlags, actor: actorFlag, json,
      watch: Flag.Boolean("watch").pipe(Flag.withDescription("Follow it to its end"), Flag.withDefault(false))
    }, Effect.fnUntraced(function*(given) {
      yield* checkName("a run's name", given.name)
      const options = yield* readOptions(given)
      const source = yield* readSource(given, options.allowPeriods)
      return yield* (yield* load).startRun({ name: given.name, ...source, options, actor: given.actor }, given)
    })).pipe(Command.withDescription("Hand a run over to runners")),
    Command.make("extend", { name, ...sourceFlags, actor: actorFlag }, Effect.fnUntraced(function*(given) {
      const hasSource = Option.isSome(given.query) || Option.isSome(given.file) || Option.isSome(given.definition)
      const source = hasSource ? yield* readSource(given, []) : undefined
      return yield* (yield* load).extendRun({ run: given.name, actor: given.actor, ...source })
    })).pipe(Command.withDescription("Read the source of a run that is over once more, and charge the rows that it did not have")),
    act("pause", "Send nothing more until it is resumed; what was sent is settled"),
    Command.make("resume", { name, actor: actorFlag }, Effect.fnUntraced(function*(given) {
      return yield* (yield* load).actOnRun("resume", given.name, given.actor, "")
    })).pipe(Command.withDescription("Go on with a run that was paused")),
    act("cancel", "Send nothing more, ever; what was sent is settled, the rest is not started"),
    Command.make("watch", { name, json }, Effect.fnUntraced(function*({ json, name }) {
      return yield* (yield* load).watchRun(name, json)
    })).pipe(Command.withDescription("Follow a run to its end; the status is 0 when every row is paid"))
  ])
)
