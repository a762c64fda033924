/** The flags of `purser vault …`. */
import { parseCurrency, parsePeriod } from "@purser/core"
import { Effect, Option, Result } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { refused } from "../CommandFailed.ts"
import { periodLabels } from "./periodLabels.ts"
import { reasonFlag } from "./recordFlags.ts"

const json = Flag.Boolean("json").pipe(Flag.withDescription("Print JSON"), Flag.withDefault(false))
const idArgument = Argument.String("VAULT").pipe(Argument.withDescription("The vault's id, vault_…"))
const reason = reasonFlag.pipe(Flag.withDescription("Why, for the audit trail"))
const load = Effect.promise(() => import("../handlers/vault.ts"))

const create = Command.make("create", {
  period: Flag.String("period").pipe(Flag.withDescription("The billing period that the key serves, for example 2026-07")),
  expectedTotal: Flag.String("expected-total").pipe(Flag.withDescription("What the period's charges should add up to, for example 12345.67")),
  currency: Flag.String("currency").pipe(Flag.withDescription("The one currency that the key charges in, for example usd")),
  headroom: Flag.String("headroom").pipe(Flag.withDescription("The cap is the expected total times this factor"), Flag.withDefault("1.10")),
  name: Flag.String("name").pipe(Flag.withDescription("A name for people"), Flag.withDefault("")),
  expires: Flag.String("expires").pipe(Flag.withDescription("When the key ends: 2026-08-31, or 2026-08-31T12:00:00Z"), Flag.optional),
  allow: Flag.String("allow").pipe(
    Flag.withDescription("METHOD:PATH that the key may call, * for one segment; repeat it (default: charges, payment intents and reading)"),
    Flag.atLeast(0)
  ),
  customers: Flag.String("customers").pipe(Flag.withDescription("Customers that may be charged, by comma; repeat it (default: all)"), Flag.atLeast(0)),
  maxPerCharge: Flag.String("max-per-charge").pipe(Flag.withDescription("The largest single charge, for example 500.00"), Flag.optional),
  maxCalls: Flag.Int("max-calls").pipe(Flag.withDescription("How many calls the key may make in all"), Flag.optional),
  duplicateGuard: Flag.Boolean("duplicate-guard").pipe(
    Flag.withDescription("One paid charge for each customer, whatever the idempotency keys say"),
    Flag.withDefault(false)
  ),
  separate: Flag.Boolean("separate").pipe(
    Flag.withDescription("Make a second cap for a period and currency that has one; it knows nothing of the first one's payments"),
    Flag.withDefault(false)
  ),
  reason: reason.pipe(Flag.withDefault("")),
  json
}, Effect.fnUntraced(function*(given) {
  const currency = parseCurrency(given.currency)
  if (currency === undefined) return yield* refused(`"${given.currency}" is not a currency that Stripe charges`)
  const period = parsePeriod(given.period, { labels: yield* periodLabels })
  if (Result.isFailure(period)) return yield* refused(period.failure.message)
  return yield* (yield* load).create({
    ...given,
    currency,
    billingPeriod: period.success,
    customers: given.customers.flatMap((list) => list.split(",").map((one) => one.trim()).filter((one) => one !== "")),
    customersGiven: given.customers.length > 0,
    expires: Option.getOrUndefined(given.expires),
    maxPerCharge: Option.getOrUndefined(given.maxPerCharge),
    maxCalls: Option.getOrUndefined(given.maxCalls)
  })
})).pipe(
  Command.withDescription("Make a vault key for one period and currency; it is printed once"),
  Command.withExamples([{
    command: "purser vault create --period 2026-07 --expected-total 12345.67 --currency usd --duplicate-guard",
    description: "A key that spends at most 13580.23 usd, once for each customer"
  }])
)

const rotate = Command.make("rotate", {
  id: idArgument,
  revokeOld: Flag.Boolean("revoke-old").pipe(Flag.withDescription("End the keys that the vault has so far"), Flag.withDefault(false)),
  expires: Flag.String("expires").pipe(Flag.withDescription("When the new key ends: 2026-08-31, or 2026-08-31T12:00:00Z"), Flag.optional),
  reason: reason.pipe(Flag.withDefault("")),
  json
}, Effect.fnUntraced(function*(given) {
  return yield* (yield* load).rotate({ ...given, expires: Option.getOrUndefined(given.expires) })
})).pipe(
  Command.withDescription("Make another key of a vault, under the same cap and duplicate guard; it is printed once"),
  Command.withExamples([{ command: "purser vault rotate vault_0123456789ab --revoke-old --reason leaked", description: "A new key in place of a leaked one" }])
)

const list = Command.make("list", { json }, Effect.fnUntraced(function*(given) {
  return yield* (yield* load).list(given.json)
})).pipe(Command.withDescription("Show every vault and what it has used"))

const show = Command.make("show", { id: idArgument, json }, Effect.fnUntraced(function*(given) {
  return yield* (yield* load).show(given.id, given.json)
})).pipe(Command.withDescription("Show one vault with its rules"))

const revoke = Command.make("revoke", { id: idArgument, reason: reason.pipe(Flag.withDefault("")) }, Effect.fnUntraced(function*(given) {
  return yield* (yield* load).revoke(given.id, given.reason)
})).pipe(Command.withDescription("End every key of a vault, from the next call on; what it paid stays counted, and rotate makes a new key"))

const raise = Command.make("raise", {
  id: idArgument,
  expectedTotal: Flag.String("expected-total").pipe(Flag.withDescription("The new expected total")),
  headroom: Flag.String("headroom").pipe(Flag.withDescription("The cap is the expected total times this factor (default: as it was)"), Flag.optional),
  reason
}, Effect.fnUntraced(function*(given) {
  return yield* (yield* load).raise({ ...given, headroom: Option.getOrUndefined(given.headroom) })
})).pipe(Command.withDescription("Set another cap, with a reason that is kept"))

const release = Command.make("release", {
  id: idArgument,
  customer: Flag.String("customer").pipe(Flag.withDescription("The customer whose charge is in doubt")),
  reason
}, Effect.fnUntraced(function*(given) {
  return yield* (yield* load).release(given)
})).pipe(Command.withDescription("Give back what is held for a customer in doubt, when you have seen at Stripe that no money moved and none will"))

const kill = Command.make("kill", {
  reason: reason.pipe(Flag.withDefault("")),
  off: Flag.Boolean("off").pipe(Flag.withDescription("Switch the keys on again"), Flag.withDefault(false))
}, Effect.fnUntraced(function*(given) {
  return yield* (yield* load).kill(!given.off, given.reason)
})).pipe(Command.withDescription("Switch every vault key off, from the next call on"))

const log = Command.make("log", {
  id: idArgument.pipe(Argument.optional),
  lines: Flag.Int("lines").pipe(Flag.withDescription("The last so many lines"), Flag.withDefault(100)),
  all: Flag.Boolean("all").pipe(Flag.withDescription("The whole trail"), Flag.withDefault(false)),
  json: Flag.Boolean("json").pipe(Flag.withDescription("Export one JSON object a line"), Flag.withDefault(false))
}, Effect.fnUntraced(function*(given) {
  if (given.lines < 1) return yield* refused("--lines must be at least 1")
  return yield* (yield* load).log({ id: Option.getOrUndefined(given.id), lines: given.all ? undefined : given.lines, json: given.json })
})).pipe(Command.withDescription("Show or export the audit trail: every decision and what came of it"))

const gauge = Command.make("gauge", {
  id: idArgument.pipe(Argument.optional),
  once: Flag.Boolean("once").pipe(Flag.withDescription("Print it once instead of following it"), Flag.withDefault(false)),
  json
}, Effect.fnUntraced(function*(given) {
  return yield* (yield* load).gauge({ id: Option.getOrUndefined(given.id), once: given.once, json: given.json })
})).pipe(Command.withDescription("Show how full each vault is, and follow it live"))

/** `purser vault create | rotate | list | show | revoke | raise | release | kill | log | gauge` */
export const vaultCommand = Command.make("vault").pipe(
  Command.withDescription("Make, watch and end the vault keys of the spend-cap proxy"),
  Command.withSubcommands([create, rotate, list, show, revoke, raise, release, kill, log, gauge])
)
