/** `purser key CUSTOMER PERIOD`: the idempotency key of an identity. */
import { chargeKeyOf, defaultNamespace, idProblem, parsePeriod } from "@purser/core"
import { Effect, Option, Result } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { refused } from "../CommandFailed.ts"
import { out } from "../ui/Output.ts"
import { periodLabels } from "./periodLabels.ts"

/** `purser key` */
export const keyCommand = Command.make("key", {
  customer: Argument.String("CUSTOMER").pipe(Argument.withDescription("The customer id, as in the file")),
  period: Argument.String("PERIOD").pipe(Argument.withDescription("The billing period")),
  item: Flag.String("item").pipe(Flag.withDescription("The item, when the charge has one"), Flag.optional),
  namespace: Flag.String("namespace").pipe(Flag.withDescription("The namespace"), Flag.withDefault(defaultNamespace))
}, Effect.fnUntraced(function*(given) {
  const period = parsePeriod(given.period, { labels: yield* periodLabels })
  if (Result.isFailure(period)) return yield* refused(period.failure.message)
  for (const [name, id] of [["customer", given.customer], ["item", Option.getOrUndefined(given.item)], ["namespace", given.namespace]] as const) {
    const problem = id === undefined ? undefined : idProblem(id)
    if (problem !== undefined) return yield* refused(`${name} ${JSON.stringify(id)} ${problem}`)
  }
  yield* out(chargeKeyOf({
    customerId: given.customer,
    billingPeriod: period.success,
    item: Option.getOrUndefined(given.item),
    namespace: given.namespace
  }))
})).pipe(Command.withDescription("Print the idempotency key of a customer and period"))
