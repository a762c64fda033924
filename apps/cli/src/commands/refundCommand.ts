/** The flags of `purser refund`. */
import { firstRefundId, idProblem } from "@purser/core"
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { refused } from "../CommandFailed.ts"
import { identityFlags, readIdentity } from "./identityFlags.ts"
import { actorFlag, reasonFlag } from "./recordFlags.ts"

/** `purser refund` */
export const refundCommand = Command.make("refund", {
  ...identityFlags,
  amount: Flag.String("amount").pipe(Flag.withDescription("How much goes back, for example 5.00 (default: all that is left)"), Flag.optional),
  id: Flag.String("id").pipe(
    Flag.withDescription("Which refund of this charge it is: the same id is the same refund, another one is another (default: 1)"),
    Flag.withDefault(firstRefundId)
  ),
  payment: Flag.String("payment").pipe(
    Flag.withDescription("Another payment of this identity than the ledger's, pi_… or ch_…: which of two is given back (see purser reconcile, paid_twice)"),
    Flag.optional
  ),
  cause: Flag.Literals("cause", ["duplicate", "fraudulent", "requested_by_customer"]).pipe(
    Flag.withDescription("What Stripe is told as the reason"),
    Flag.optional
  ),
  reason: reasonFlag.pipe(Flag.withDescription("Why, for the record")),
  actor: actorFlag,
  again: Flag.Boolean("again").pipe(Flag.withDescription("Ask once more for a refund that Stripe refused"), Flag.withDefault(false)),
  dryRun: Flag.Boolean("dry-run").pipe(Flag.withDescription("Say what would go back, and send nothing"), Flag.withDefault(false)),
  json: Flag.Boolean("json").pipe(Flag.withDescription("Print one JSON object as the last line"), Flag.withDefault(false))
}, Effect.fnUntraced(function*(given) {
  const identity = yield* readIdentity(given)
  const problem = idProblem(given.id)
  if (problem !== undefined) return yield* refused(`--id ${JSON.stringify(given.id)} ${problem}`)
  const { refund } = yield* Effect.promise(() => import("../handlers/refund.ts"))
  return yield* refund(identity, {
    ...given,
    refundId: given.id,
    payment: Option.getOrUndefined(given.payment),
    amount: Option.getOrUndefined(given.amount),
    cause: Option.getOrNull(given.cause)
  })
})).pipe(
  Command.withDescription("Give a payment back, whole or in part, exactly once per id; it gives no room back under the cap"),
  Command.withExamples([
    { command: "purser refund cust_123 2026-07 --item base --reason 'billed by mistake'", description: "Everything that is left" },
    { command: "purser refund cust_123 2026-07 --amount 5.00 --id outage-july --reason 'outage'", description: "A part, under a name of its own" }
  ])
)
