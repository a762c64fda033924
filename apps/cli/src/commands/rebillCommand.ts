/** The flags of `purser rebill`. */
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { identityFlags, readIdentity } from "./identityFlags.ts"
import { actorFlag, reasonFlag } from "./recordFlags.ts"

const { revision: _, ...firstOf } = identityFlags

/** `purser rebill` */
export const rebillCommand = Command.make("rebill", {
  ...firstOf,
  amount: Flag.String("amount").pipe(Flag.withDescription("What is billed now, for example 28.00")),
  stripeCustomer: Flag.String("stripe-customer").pipe(Flag.withDescription("Another Stripe customer than before"), Flag.optional),
  paymentMethod: Flag.String("payment-method").pipe(Flag.withDescription("Another payment method than before"), Flag.optional),
  unrefunded: Flag.Boolean("unrefunded").pipe(
    Flag.withDescription("Bill anew though the payment before was not given back in full, by somebody's decision"),
    Flag.withDefault(false)
  ),
  reason: reasonFlag.pipe(Flag.withDescription("Why, for the record")),
  actor: actorFlag,
  json: Flag.Boolean("json").pipe(Flag.withDescription("Print one JSON object as the last line"), Flag.withDefault(false))
}, Effect.fnUntraced(function*(given) {
  const identity = yield* readIdentity({ ...given, revision: 0 })
  const { rebill } = yield* Effect.promise(() => import("../handlers/rebill.ts"))
  return yield* rebill(identity, {
    ...given,
    stripeCustomer: Option.getOrUndefined(given.stripeCustomer),
    paymentMethod: Option.getOrUndefined(given.paymentMethod)
  })
})).pipe(
  Command.withDescription("Bill a refunded charge anew, as the next revision of its identity, linked to the one before"),
  Command.withExamples([
    { command: "purser rebill cust_123 2026-07 --item base --amount 28.00 --reason 'right price'", description: "After purser refund" }
  ])
)
