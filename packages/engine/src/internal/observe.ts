/**
 * What becomes of a row when its object at the processor is said to have changed. The object's present state decides, and
 * the ledger's own steps record it: a success of the attached object whoever holds the row, anything else only from a
 * state that waits outside. A final state is never reopened.
 */
import {
  type AccountPayment, Canceled, ChargeGateway, ChargeKey, type ChargeRecord, type ClaimedCharge, type GatewayPayment, Ledger, type PipelineError,
  Sightings, type UnknownReason, type WebhookVerdict
} from "@purser/core"
import { Effect, Schema } from "effect"
import { ChargePipeline } from "../ChargePipeline.ts"
import type { PipelineSettings } from "../PipelineOptions.ts"
import { heedingRate } from "./backoff.ts"
import { isAttached } from "./judge.ts"

/** What was found and done. */
export interface Observation {
  readonly verdict: WebhookVerdict
  readonly detail: string | null
}

const isKey = Schema.is(ChargeKey)
const said = (verdict: WebhookVerdict, detail: string | null = null): Observation => ({ verdict, detail })

/** An object that belongs to no row, as the list shows it. */
export const unknownOf = (seen: AccountPayment, reason: UnknownReason, detail: string) => ({
  id: seen.id,
  reason,
  chargeKey: seen.identity?.chargeKey ?? null,
  amountMinor: seen.amountMinor,
  currency: seen.currency,
  stripeCustomerId: seen.stripeCustomerId,
  status: seen.status,
  detail
})

/** No lease has this epoch: whoever comes with it can record what is proved, and nothing else. */
const noEpoch = -1

/** The row in the hands of one who holds no lease. */
export const unleased = (record: ChargeRecord, worker: string): ClaimedCharge => ({
  lease: { chargeKey: record.chargeKey, worker, epoch: noEpoch },
  leaseLeftMs: 0,
  request: record.request,
  state: "processing",
  resumed: true,
  generation: record.generation,
  attempt: record.attempt,
  paymentIntentId: record.paymentIntentId,
  paymentMethod: record.request.paymentMethod ?? null,
  chosenMethod: null,
  declinedChargeId: null,
  sinceFirstClaimMs: 0,
  firstClaimedAtMs: 0
})

/** Money has moved, or is on its way. */
const isMoney = (status: AccountPayment["status"]) => status === "succeeded" || status === "processing" || status === "requires_action"

/**
 * Whether the row says already what the object says. Off session, a wish for the customer is a refusal with a code of its
 * own, and the object is back where it was before.
 */
const agrees = (state: ChargeRecord["state"], { decline, status }: GatewayPayment): boolean =>
  state === status
  || (state === "requires_action" && status === "declined" && [decline?.code, decline?.declineCode].includes("authentication_required"))

/** The observing step, over the services of the app. */
export const makeObserve = Effect.fnUntraced(function*(worker: string, settings: PipelineSettings) {
  const ledger = yield* Ledger
  const gateway = yield* ChargeGateway
  const pipeline = yield* ChargePipeline
  const sightings = yield* Sightings
  const heed = heedingRate(settings)

  const listed = (seen: AccountPayment, reason: UnknownReason, detail: string) =>
    Effect.as(sightings.list(unknownOf(seen, reason, detail)), said("unknown_object", `${seen.id}: ${detail}`))

  /** Goes on as the pipeline would; a quarantine is an answer here. */
  const resume = (charge: ClaimedCharge): Effect.Effect<Observation, PipelineError> =>
    pipeline.resume(charge).pipe(
      Effect.map((outcome) => said("settled", outcome._tag)),
      Effect.catchIf(
        (error) => error._tag === "LedgerError" && error.reason._tag === "ChargeQuarantined",
        (error) => Effect.succeed(said("quarantined", error.message))
      )
    )

  const waiting = Effect.fnUntraced(function*(record: ChargeRecord, now: GatewayPayment): Effect.fn.Return<Observation, PipelineError> {
    if (agrees(record.state, now)) return said("unchanged")
    const taken = yield* ledger.takeWaiting(record.chargeKey, worker)
    if (taken === undefined) return said("in_work")
    if (record.state !== "requires_action" || now.status !== "canceled") return yield* resume(taken)
    // What waited for the customer and was given up there is over: nobody asks the customer anew because of it.
    yield* ledger.settle({
      lease: taken.lease,
      attempt: taken.attempt,
      paymentIntentId: now.id,
      outcome: new Canceled({ chargeKey: record.chargeKey, alreadySettled: false, paymentIntentId: now.id, detail: "canceled while it waited for the customer" })
    })
    return said("settled", "Canceled")
  })

  /** `seen` is the object that the hint was about; the row's own object is read anew. */
  const observe = Effect.fnUntraced(function*(seen: AccountPayment): Effect.fn.Return<Observation, PipelineError> {
    const key = seen.identity?.chargeKey
    if (key === undefined || !isKey(key)) {
      return isMoney(seen.status) ? yield* listed(seen, "foreign", "it bears no charge key") : said("ignored", "another program's")
    }
    const record = yield* ledger.find(key)
    if (record === undefined) return yield* listed(seen, "missing_here", "the ledger has no such row")
    const id = record.paymentIntentId
    const isOther = !isAttached(record, seen)
    if (isOther && isMoney(seen.status)) {
      return yield* listed(seen, "not_attached", id === null ? "the row has no object" : `the row names ${id}`)
    }
    if (id === null) return said("in_work")
    if (isOther) return said("unchanged", `the row names ${id}`)
    if (record.state === "succeeded") return said("unchanged")
    if (record.quarantine !== null) return said("quarantined", record.quarantine)
    const now = yield* heed(gateway.retrieve({ chargeKey: key, request: record.request, generation: record.generation, attempt: record.attempt }, id))
    if (now.status === "succeeded") return yield* resume(unleased(record, worker))
    if (record.state === "processing" || record.state === "requires_action") return yield* waiting(record, now)
    return said(record.state === "planned" || record.state === "claimed" || record.state === "attached" ? "in_work" : "unchanged")
  })
  return observe
})
