/** The arguments that name one charge: customer, period, item and namespace, checked as in a file. */
import { type ChargeIdentity, defaultNamespace, idProblem, parsePeriod } from "@purser/core"
import { Effect, Option, Result } from "effect"
import { Argument, Flag } from "effect/cli"
import { refused } from "../CommandFailed.ts"
import { periodLabels } from "./periodLabels.ts"

/** The arguments and flags. */
export const identityFlags = {
  customer: Argument.String("CUSTOMER").pipe(Argument.withDescription("The customer id, as in the file")),
  period: Argument.String("PERIOD").pipe(Argument.withDescription("The billing period")),
  item: Flag.String("item").pipe(Flag.withDescription("The item, when the charge has one"), Flag.optional),
  revision: Flag.Int("revision").pipe(
    Flag.withDescription("Which billing anew, where the charge was billed anew (default: 0, the first)"),
    Flag.withDefault(0)
  ),
  namespace: Flag.String("namespace").pipe(Flag.withDescription(`The namespace (default: ${defaultNamespace})`), Flag.withDefault(defaultNamespace))
} as const

/** The identity that they name. */
export const readIdentity = Effect.fnUntraced(function*(given: {
  readonly customer: string
  readonly period: string
  readonly item: Option.Option<string>
  readonly revision: number
  readonly namespace: string
}) {
  const period = parsePeriod(given.period, { labels: yield* periodLabels })
  if (Result.isFailure(period)) return yield* refused(period.failure.message)
  const item = Option.getOrUndefined(given.item)
  for (const [name, id] of [["customer", given.customer], ["item", item], ["namespace", given.namespace]] as const) {
    const problem = id === undefined ? undefined : idProblem(id)
    if (problem !== undefined) return yield* refused(`${name} ${JSON.stringify(id)} ${problem}`)
  }
  if (given.revision < 0) return yield* refused("--revision must not be negative")
  const identity: ChargeIdentity = {
    customerId: given.customer, billingPeriod: period.success, item, namespace: given.namespace, revision: given.revision
  }
  return identity
})
