/** The flags of `purser retry`. */
import { idProblem } from "@purser/core"
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { refused } from "../CommandFailed.ts"
import { identityFlags, readIdentity } from "./identityFlags.ts"
import { actorFlag, reasonFlag } from "./recordFlags.ts"

const both = "CUSTOMER and PERIOD name one charge; --due takes those that policy says are due. Give one or the other."

/** `purser retry` */
export const retryCommand = Command.make("retry", {
  ...identityFlags,
  customer: identityFlags.customer.pipe(Argument.optional),
  period: identityFlags.period.pipe(Argument.optional),
  due: Flag.Boolean("due").pipe(Flag.withDescription("Try every declined charge whose next attempt is due by policy"), Flag.withDefault(false)),
  paymentMethod: Flag.String("payment-method").pipe(
    Flag.withDescription("Pay with this Stripe payment method from now on; the terms of the charge stay as they are"),
    Flag.optional
  ),
  reason: reasonFlag.pipe(Flag.withDescription("Why, for the record"), Flag.optional),
  actor: actorFlag,
  dryRun: Flag.Boolean("dry-run").pipe(Flag.withDescription("Say what would move, and move nothing"), Flag.withDefault(false)),
  json: Flag.Boolean("json").pipe(Flag.withDescription("Print one JSON object as the last line"), Flag.withDefault(false))
}, Effect.fnUntraced(function*({ customer, due, paymentMethod, period, reason, ...given }) {
  const { retry, retryDue } = yield* Effect.promise(() => import("../handlers/retry.ts"))
  if (due) {
    if (Option.isSome(customer) || Option.isSome(paymentMethod)) return yield* refused(both)
    return yield* retryDue({ ...given, reason: Option.getOrElse(reason, () => "due by policy") })
  }
  if (Option.isNone(customer) || Option.isNone(period)) return yield* refused(both)
  if (Option.isNone(reason)) return yield* refused("--reason: say why, for the record")
  const method = Option.getOrUndefined(paymentMethod)
  const problem = method === undefined ? undefined : idProblem(method)
  if (problem !== undefined) return yield* refused(`--payment-method ${JSON.stringify(method)} ${problem}`)
  const identity = yield* readIdentity({ ...given, customer: customer.value, period: period.value })
  return yield* retry(identity, { ...given, reason: reason.value, paymentMethod: method })
})).pipe(
  Command.withDescription("Try a charge that ended unpaid again, once, with a reason that is kept; or all that are due by policy"),
  Command.withExamples([
    { command: "purser retry cust_123 2026-07 --item base --reason 'new card'", description: "After the customer has a new default card" },
    { command: "purser retry cust_123 2026-07 --payment-method pm_123 --reason 'new card'", description: "With another method than the request's" },
    { command: "purser retry --due", description: "From cron: soft declines whose wait is over" }
  ])
)
