/** The flags of the commands that look at the stores or act on them: `status`, `sweep` and `cap`. */
import { ChargeKey, parseCurrency, parsePeriod } from "@purser/core"
import { Duration, Effect, Option, Result, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { refused } from "../CommandFailed.ts"
import { periodLabels } from "./periodLabels.ts"
import { actorFlag, reasonFlag } from "./recordFlags.ts"

const json = Flag.Boolean("json").pipe(Flag.withDescription("Print JSON"), Flag.withDefault(false))
const periodArgument = Argument.String("PERIOD").pipe(Argument.withDescription("A billing period, for example 2026-07"))

const readPeriod = Effect.fnUntraced(function*(text: string) {
  const period = parsePeriod(text, { labels: yield* periodLabels })
  return Result.isSuccess(period) ? period.success : yield* refused(period.failure.message)
})

const isKey = Schema.is(ChargeKey)

/** `purser status [PERIOD]`, `purser status --charge KEY` */
export const statusCommand = Command.make("status", {
  period: periodArgument.pipe(Argument.optional),
  charge: Flag.String("charge").pipe(Flag.withDescription("One charge by its key (see purser key): its trail, and what went back of it"), Flag.optional),
  watch: Flag.Boolean("watch").pipe(
    Flag.withAlias("w"),
    Flag.withDescription("Look again and again until stopped: a live view on a terminal, else a line a look, or a JSON object with --json"),
    Flag.withDefault(false)
  ),
  interval: Flag.String("interval").pipe(Flag.withDescription("With --watch: the rest between two looks"), Flag.withDefault("2 seconds")),
  json
}, Effect.fnUntraced(function*(given) {
  if (Option.isSome(given.charge)) {
    if (!isKey(given.charge.value)) return yield* refused(`"${given.charge.value}" is no charge key; purser key CUSTOMER PERIOD prints one`)
    const { chargeStatus } = yield* Effect.promise(() => import("../handlers/chargeStatus.ts"))
    return yield* chargeStatus(given.charge.value, given.json)
  }
  const period = Option.isSome(given.period) ? yield* readPeriod(given.period.value) : undefined
  if (given.watch) {
    const interval = Duration.fromInput(given.interval as Duration.Input)
    if (Option.isNone(interval) || Duration.toMillis(interval.value) < 100) return yield* refused("--interval is a duration of 100 millis or more, for example '2 seconds'")
    const { watchStatus } = yield* Effect.promise(() => import("../handlers/statusWatch.ts"))
    return yield* watchStatus({ period, interval: interval.value, json: given.json })
  }
  const { status } = yield* Effect.promise(() => import("../handlers/status.ts"))
  return yield* status({ period, json: given.json })
})).pipe(Command.withDescription("Show charges by period and state, and the caps"))

/** `purser sweep` */
export const sweepCommand = Command.make("sweep", { json }, Effect.fnUntraced(function*(given) {
  const { sweep } = yield* Effect.promise(() => import("../handlers/sweep.ts"))
  return yield* sweep(given.json)
})).pipe(Command.withDescription("Take up every charge whose worker is gone, once, and settle what can be settled"))

const scopeFlags = {
  period: periodArgument,
  currency: Flag.String("currency").pipe(Flag.withDescription("The currency of the cap, for example usd")),
  namespace: Flag.String("namespace").pipe(Flag.withDescription("The namespace of the charges"), Flag.withDefault("zmq-billing"))
}

const readScope = Effect.fnUntraced(function*(given: { readonly period: string; readonly currency: string; readonly namespace: string }) {
  const currency = parseCurrency(given.currency)
  if (currency === undefined) return yield* refused(`"${given.currency}" is not a currency that Stripe charges`)
  return { namespace: given.namespace, billingPeriod: yield* readPeriod(given.period), currency }
})

const figures = {
  expectedTotal: Flag.String("expected-total").pipe(Flag.withDescription("What the period's charges should add up to, for example 12345.67")),
  headroom: Flag.String("headroom").pipe(Flag.withDescription("The cap is the expected total times this factor"), Flag.withDefault("1.10"))
}

const why = {
  reason: reasonFlag.pipe(Flag.withDescription("Why, for the record")),
  actor: actorFlag
}
const actOf = ({ actor, reason }: { readonly actor: string; readonly reason: string }) =>
  reason.trim() === "" ? refused("--reason: say why, for the record") : Effect.succeed({ reason, actor })

const loadCap = Effect.promise(() => import("../handlers/cap.ts"))

/** `purser cap open | show | raise | close | reopen` */
export const capCommand = Command.make("cap").pipe(
  Command.withDescription("Open, show, raise, close and reopen the spend caps of billing periods"),
  Command.withSubcommands([
    Command.make("open", { ...scopeFlags, ...figures }, Effect.fnUntraced(function*(given) {
      return yield* (yield* loadCap).openCap(yield* readScope(given), given)
    })).pipe(Command.withDescription("Open a cap: the expected total times the headroom; nothing is charged without one")),
    Command.make("show", { period: periodArgument.pipe(Argument.optional), json }, Effect.fnUntraced(function*(given) {
      return yield* (yield* loadCap).showCaps(Option.isSome(given.period) ? yield* readPeriod(given.period.value) : undefined, given.json)
    })).pipe(Command.withDescription("Show the caps and how much of them is used")),
    Command.make("raise", { ...scopeFlags, ...figures, ...why }, Effect.fnUntraced(function*(given) {
      return yield* (yield* loadCap).raiseCap(yield* readScope(given), { ...given, ...(yield* actOf(given)) })
    })).pipe(Command.withDescription("Set other figures, with a reason that is kept")),
    Command.make("close", { ...scopeFlags, actor: why.actor, reason: why.reason.pipe(Flag.optional) }, Effect.fnUntraced(function*(given) {
      const reason = Option.isSome(given.reason) ? { reason: given.reason.value } : {}
      return yield* (yield* loadCap).closeCap(yield* readScope(given), { actor: given.actor, ...reason })
    })).pipe(Command.withDescription("Take no more charges for the period; who, and why if you say it, is kept")),
    Command.make("reopen", { ...scopeFlags, ...why }, Effect.fnUntraced(function*(given) {
      return yield* (yield* loadCap).reopenCap(yield* readScope(given), yield* actOf(given))
    })).pipe(Command.withDescription("Take charges for a closed period again, with a reason that is kept; its figures stay"))
  ])
)
