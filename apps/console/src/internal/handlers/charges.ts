/** Charges: the search, the sums, and one charge's whole story. */
import { ChargeKey, ChargeSearch, Ledger } from "@purser/core"
import { Cache, Clock, Duration, Effect, Exit, Option, Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ConsoleApi } from "../../api/ConsoleApi.ts"
import { ActRefused, NotThere } from "../../api/ConsoleError.ts"
import { ProcessorDesk } from "../../ProcessorDesk.ts"
import { away, makePerform } from "../perform.ts"
import { makeStories } from "../story.ts"

const Place = Schema.fromJsonString(Schema.Struct({ customerId: Schema.String, billingPeriod: Schema.String, chargeKey: Schema.String }))
const readPlace = Schema.decodeUnknownOption(Place)
const writePlace = Schema.encodeSync(Place)

const noDesk = new ActRefused({ message: "this console has no key to Stripe (PURSER_STRIPE_KEY): use the command" })

/** The handlers of the group. */
export const layer = HttpApiBuilder.group(ConsoleApi, "charges", Effect.fnUntraced(function*(handlers) {
  const search = yield* ChargeSearch
  const ledger = yield* Ledger
  const storyOf = yield* makeStories
  const perform = yield* makePerform
  const desk = yield* Effect.serviceOption(ProcessorDesk)

  // Sums read every charge of the period, so that one answer serves all who look, the longer the more it took.
  const totals = yield* Cache.makeWith(
    Effect.fnUntraced(function*(period: string) {
      const atMs = yield* Clock.currentTimeMillis
      const totals = yield* Effect.mapError(ledger.report(period === "" ? undefined : period), away)
      return { totals, atMs, tookMs: (yield* Clock.currentTimeMillis) - atMs }
    }),
    { capacity: 64, timeToLive: (exit) => Duration.millis(Exit.isSuccess(exit) ? Math.max(1000, exit.value.tookMs * 10) : 0) }
  )

  return handlers
    .handle("find", Effect.fnUntraced(function*({ query }) {
      const customer = query.customer?.trim() ?? ""
      const after = query.after === undefined ? Option.none() : readPlace(Buffer.from(query.after, "base64url").toString())
      if (query.after !== undefined && Option.isNone(after)) return yield* new ActRefused({ message: "this is no place of the list" })
      const page = yield* Effect.mapError(search.find({
        ...(customer === "" ? {} : { customer: { text: customer, whole: query.match === "whole" } }),
        ...(query.period === undefined || query.period === "" ? {} : { billingPeriod: query.period }),
        ...(query.state === undefined ? {} : { state: query.state }),
        ...(query.paymentIntent === undefined || query.paymentIntent === "" ? {} : { paymentIntentId: query.paymentIntent.trim() })
      }, Option.getOrNull(after), query.limit ?? 100), away)
      return { ...page, next: page.next === null ? null : Buffer.from(writePlace(page.next)).toString("base64url") }
    }))
    .handle("totals", ({ query }) => Cache.get(totals, query.period ?? ""))
    .handle("story", Effect.fnUntraced(function*({ params }) {
      const story = yield* Effect.mapError(storyOf(ChargeKey.make(params.chargeKey)), away)
      return story ?? (yield* new NotThere({ message: "the ledger holds no such charge" }))
    }))
    .handle("retry", ({ params, payload: { paymentMethod, reason } }) =>
      perform({ act: "retry", subject: params.chargeKey, reason, ...(paymentMethod === undefined ? {} : { detail: `with ${paymentMethod}` }) }, (actor) =>
        Option.isNone(desk) ? Effect.fail(noDesk) : desk.value.retry(params.chargeKey, { actor, reason }, paymentMethod)))
    .handle("resume", ({ params, payload: { reason } }) =>
      perform({ act: "go on", subject: params.chargeKey, reason }, (actor) =>
        Option.isNone(desk) ? Effect.fail(noDesk) : desk.value.resume(params.chargeKey, { actor, reason })))
}))
