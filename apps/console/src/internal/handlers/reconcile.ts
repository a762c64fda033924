/** Differences between the ledger and the processor, both ways, and the objects that belong to no charge. */
import { Sightings } from "@purser/core"
import { Effect, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ConsoleApi } from "../../api/ConsoleApi.ts"
import { ActRefused } from "../../api/ConsoleError.ts"
import { ProcessorDesk } from "../../ProcessorDesk.ts"
import { away, makePerform } from "../perform.ts"

const unknownMax = 500

/** The handlers of the group. */
export const layer = HttpApiBuilder.group(ConsoleApi, "reconcile", Effect.fnUntraced(function*(handlers) {
  const sightings = yield* Sightings
  const perform = yield* makePerform
  const desk = yield* Effect.serviceOption(ProcessorDesk)
  const comparison = Option.isNone(desk) ? Effect.succeed(null) : desk.value.comparison
  return handlers
    .handle("get", () =>
      Effect.all({ last: comparison, unknown: Effect.mapError(sightings.unknown("", unknownMax), away) }))
    .handle("start", ({ payload: { billingPeriod, dryRun, reason, sinceMs } }) =>
      perform({ act: dryRun ? "compare" : "reconcile", subject: billingPeriod, reason }, (actor) =>
        Option.isNone(desk)
          ? Effect.fail(new ActRefused({ message: "this console has no key to Stripe (PURSER_STRIPE_KEY): use the command" }))
          : Effect.as(desk.value.reconcile({ billingPeriod, sinceMs, dryRun }, { actor, reason }), "the comparison has begun")))
    .handle("unlist", ({ payload: { id, reason } }) =>
      perform({ act: "take off the list", subject: id, reason }, (actor) =>
        Effect.flatMap(Effect.mapError(sightings.unlist(id, `${actor}: ${reason}`), away), (did) =>
          did ? Effect.succeed("it is off the list") : Effect.fail(new ActRefused({ message: "it is not on the list" })))))
}))
