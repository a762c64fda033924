/** The flags of `purser dunning`. */
import { idProblem } from "@purser/core"
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { refused } from "../CommandFailed.ts"
import { identityFlags, readIdentity } from "./identityFlags.ts"
import { actorFlag, reasonFlag } from "./recordFlags.ts"

const load = Effect.promise(() => import("../handlers/dunning.ts"))
const json = Flag.Boolean("json").pipe(Flag.withDescription("Print JSON"), Flag.withDefault(false))
const reason = reasonFlag.pipe(Flag.withDescription("Why, for the record"))

/** `purser dunning list | show | start | cancel | card` */
export const dunningCommand = Command.make("dunning").pipe(
  Command.withDescription("Follow up declined charges: cases that a runner asks for again, day after day, by policy"),
  Command.withExamples([
    { command: "purser dunning start cust_123 2026-07 --item base --reason 'agreed by phone'", description: "Follow up one declined charge; with PURSER_DUNNING=on a runner does so for each" },
    { command: "purser dunning card cus_123 --payment-method pm_456 --reason 'new card'", description: "Try all that this customer owes with a new card, at once" },
    { command: "purser dunning cancel cust_123 2026-07 --item base --reason goodwill", description: "Ask no more" }
  ]),
  Command.withSubcommands([
    Command.make("list", {
      all: Flag.Boolean("all").pipe(Flag.withDescription("Cases that have ended, too"), Flag.withDefault(false)),
      limit: Flag.Int("limit").pipe(Flag.withDescription("How many at the most, newest first"), Flag.withDefault(100)),
      json
    }, Effect.fnUntraced(function*(given) {
      if (given.limit < 1 || given.limit > 10_000) return yield* refused("--limit must be from 1 to 10000")
      return yield* (yield* load).list(given)
    })).pipe(Command.withDescription("Show open cases and when they go on")),
    Command.make("show", { ...identityFlags, json }, Effect.fnUntraced(function*(given) {
      return yield* (yield* load).show(yield* readIdentity(given), given.json)
    })).pipe(Command.withDescription("Show the cases of one charge")),
    Command.make("start", { ...identityFlags, reason, actor: actorFlag, json }, Effect.fnUntraced(function*(given) {
      return yield* (yield* load).start(yield* readIdentity(given), given)
    })).pipe(Command.withDescription("Open a case for a declined charge; a runner takes it up")),
    Command.make("cancel", { ...identityFlags, reason, actor: actorFlag, json }, Effect.fnUntraced(function*(given) {
      return yield* (yield* load).cancel(yield* readIdentity(given), given)
    })).pipe(Command.withDescription("End the open case of a charge; no further attempt is made")),
    Command.make("card", {
      customer: Argument.String("STRIPE_CUSTOMER").pipe(Argument.withDescription("The Stripe customer (cus_…)")),
      paymentMethod: Flag.String("payment-method").pipe(
        Flag.withDescription("The new method (pm_…); without it the customer's new default one, for charges that name none"),
        Flag.optional
      ),
      reason,
      actor: actorFlag,
      json
    }, Effect.fnUntraced(function*({ customer, paymentMethod, ...act }) {
      const method = Option.getOrUndefined(paymentMethod)
      for (const [name, id] of [["STRIPE_CUSTOMER", customer], ["--payment-method", method]] as const) {
        const problem = id === undefined ? undefined : idProblem(id)
        if (problem !== undefined) return yield* refused(`${name} ${JSON.stringify(id)} ${problem}`)
      }
      return yield* (yield* load).card(customer, method, act)
    })).pipe(Command.withDescription("Say that a customer has a new card: their open cases try it at once"))
  ])
)
