/**
 * The calls that can leave an unknown outcome, each repeated only as the protocol allows.
 *
 * `obtain` ends with an object that can be paid at most once, `prepareDraft` with one that has its amount, and
 * `confirmUntilKnown` with that object in a state that decides the charge. All give up after a bounded number of tries, with the last error; the row keeps what is known.
 */
import { ChargeError, type ChargeGateway, type ChargeKey, type ChargeRequest, type ClaimedCharge, type GatewayOrder, type GatewayPayment, type PipelineError, UnexpectedAnswer } from "@purser/core"
import { type Cause, Effect, Result } from "effect"
import type { PipelineSettings } from "../PipelineOptions.ts"
import { isDefinitive, isSpentKey, startTries } from "./backoff.ts"
import { isDeclinedNow } from "./outcomes.ts"

/** Clocks of two machines differ; a look-up starts this much before the first claim. */
const skewMs = 300_000

/** What the gateway is asked for. */
export class Order implements GatewayOrder {
  readonly chargeKey: ChargeKey
  readonly request: ChargeRequest
  readonly generation: number
  readonly attempt: number

  constructor(chargeKey: ChargeKey, request: ChargeRequest, generation: number, attempt: number) {
    this.chargeKey = chargeKey
    this.request = request
    this.generation = generation
    this.attempt = attempt
  }
}

/** The order of a claimed charge. */
export const orderOf = ({ attempt, generation, lease, request }: ClaimedCharge): GatewayOrder => new Order(lease.chargeKey, request, generation, attempt)

const isUnpaid = ({ status }: GatewayPayment) => status === "unconfirmed" || status === "declined" || status === "draft"

/** A decline that names the same failed charge as the last recorded one is that one again. */
const isOldDecline = ({ declinedChargeId }: ClaimedCharge, { reason }: ChargeError) =>
  (reason._tag === "CardDeclined" || reason._tag === "AuthenticationRequired") && reason.declinedChargeId !== null
  && reason.declinedChargeId === declinedChargeId

/** What is known of the money is not enough to decide. */
const undecided = (charge: ClaimedCharge, detail: string) =>
  new ChargeError({ reason: new UnexpectedAnswer({ operation: "pipeline", detail }), chargeKey: charge.lease.chargeKey, requestId: null })

/** Finds the object that an earlier holder may have left, else makes one. No money moves. */
export const obtain = Effect.fnUntraced(function*(
  gateway: ChargeGateway["Service"],
  settings: PipelineSettings,
  charge: ClaimedCharge
): Effect.fn.Return<GatewayPayment, ChargeError> {
  const order = orderOf(charge)
  const sinceMs = Math.min(charge.firstClaimedAtMs, settings.restorePointMs ?? Number.POSITIVE_INFINITY) - skewMs
  let look = settings.restorePointMs !== undefined || (charge.resumed && charge.sinceFirstClaimMs >= settings.lookUpAfterMs)
  let spentKeys = 0
  const nextTry = yield* startTries(settings)
  for (;;) {
    const create = () => gateway.create(order, spentKeys === 0 ? "" : `:r${spentKeys}`)
    const obtained = yield* Effect.result(
      look ? Effect.flatMap(gateway.find(order, sinceMs), (found) => found === undefined ? create() : Effect.succeed(found)) : create()
    )
    if (Result.isSuccess(obtained)) return obtained.success
    const error = obtained.failure
    if (isDefinitive(error)) return yield* error
    if (isSpentKey(error)) {
      // The stored answer hides whether an object was made: look for it before another key is used.
      spentKeys += 1
      look = true
    }
    if (!(yield* nextTry(error))) return yield* error
  }
})

/** Repeats a call that moves nothing until it answers, a bounded number of times. */
export const patiently = Effect.fnUntraced(function*<A>(
  settings: PipelineSettings,
  call: Effect.Effect<A, ChargeError>
): Effect.fn.Return<A, ChargeError> {
  const nextTry = yield* startTries(settings)
  for (;;) {
    const answer = yield* Effect.result(call)
    if (Result.isSuccess(answer)) return answer.success
    if (isDefinitive(answer.failure) || !(yield* nextTry(answer.failure))) return yield* answer.failure
  }
})

/** Adds what a draft still lacks, until it is ready. No money moves; a stored 5xx is got round, since what is there is never added twice. */
export const prepareDraft = Effect.fnUntraced(function*(
  gateway: ChargeGateway["Service"],
  settings: PipelineSettings,
  charge: ClaimedCharge,
  id: string
): Effect.fn.Return<GatewayPayment, ChargeError> {
  if (gateway.prepare === undefined) return yield* undecided(charge, `${id} is a draft, which ${gateway.name} cannot prepare`)
  let spentKeys = 0
  const nextTry = yield* startTries(settings)
  for (;;) {
    const prepared = yield* Effect.result(gateway.prepare(orderOf(charge), id, spentKeys === 0 ? "" : `:r${spentKeys}`))
    if (Result.isSuccess(prepared)) return prepared.success
    const error = prepared.failure
    if (isSpentKey(error)) spentKeys += 1
    if (isDefinitive(error) || !(yield* nextTry(error))) return yield* error
  }
})

/**
 * The object that is attached to the charge. A refusal to show it (a wrong account, a missing permission) says nothing
 * about the money, so that it is never taken for a refusal of the charge.
 */
export const look = (gateway: ChargeGateway["Service"], settings: PipelineSettings, charge: ClaimedCharge, id: string) =>
  patiently(settings, gateway.retrieve(orderOf(charge), id)).pipe(
    Effect.mapError((error) => isDefinitive(error) ? undecided(charge, `${id} cannot be read: ${error.message}`) : error)
  )

/** How one object is confirmed. */
export interface ConfirmTries {
  /** Between a repeat and a second payment stands the key alone. */
  readonly oneCall: boolean
  /** One try, under a key of its own where there is a suffix; to be run at once. */
  readonly once: (keySuffix: string) => Effect.Effect<GatewayPayment, PipelineError>
  /** The object as it stands. */
  readonly look: Effect.Effect<GatewayPayment, ChargeError>
}

/** One try, as the gateway is told of it. */
export class ConfirmTry {
  readonly id: string
  readonly paymentMethod: string
  readonly attempt: number
  readonly keySuffix: string

  constructor(id: string, paymentMethod: string, attempt: number, keySuffix: string) {
    this.id = id
    this.paymentMethod = paymentMethod
    this.attempt = attempt
    this.keySuffix = keySuffix
  }
}

/**
 * Confirms, after a first try that failed, until the object says what became of it. After an unknown answer the object is read first; it
 * decides. The attempt number stays the same: only a recorded decline moves it.
 */
export const confirmUntilKnown = (settings: PipelineSettings, charge: ClaimedCharge, tries: ConfirmTries, cause: Cause.Cause<PipelineError>): Effect.Effect<GatewayPayment, PipelineError> =>
  Effect.catch(Effect.failCause(cause), (error) => error._tag === "ChargeError" ? confirmAgain(settings, charge, tries, error) : Effect.fail(error))

const confirmAgain = Effect.fnUntraced(function*(
  settings: PipelineSettings,
  charge: ClaimedCharge,
  tries: ConfirmTries,
  first: ChargeError
): Effect.fn.Return<GatewayPayment, PipelineError> {
  const { oneCall } = tries
  let error = first
  let spentKeys = 0
  let unknownBefore = false
  const nextTry = yield* startTries(settings)
  for (;;) {
    if (isOldDecline(charge, error) && !oneCall) {
      // The stored answer to an earlier attempt, under a key that this ledger has not used yet: it is no answer to this one.
      spentKeys += 1
      if (!(yield* nextTry(error))) return yield* undecided(charge, `the processor repeats an earlier decline: ${error.message}`)
    } else {
      if (isDefinitive(error)) {
        // A key that was taken away in between says nothing about an earlier confirm, which may have been executed.
        return yield* error.reason._tag === "PermissionDenied" && (unknownBefore || charge.resumed)
          ? undecided(charge, `an earlier confirm is undecided: ${error.message}`)
          : error
      }
      const foreign = oneCall && error.reason._tag === "KeyReused"
      // Under a foreign key nothing is gained by waiting: it was used for something else, or it was not.
      if (!foreign && !(yield* nextTry(error))) return yield* error
      if (error.outcome === "unknown") {
        unknownBefore = true
        const payment = yield* tries.look
        if (!isUnpaid(payment) || (oneCall && payment.status === "declined") || isDeclinedNow(charge, payment)) return payment
        if (foreign) return yield* error
        // The object is unpaid and the key's answer is a stored 5xx: another key is safe, since the object is paid at most
        // once. Where only the key makes it so, the charge stays open until the processor has forgotten it.
        if (!oneCall && isSpentKey(error)) spentKeys += 1
      }
    }
    const confirmed = yield* Effect.result(tries.once(spentKeys === 0 ? "" : `:r${spentKeys}`))
    if (Result.isSuccess(confirmed)) return confirmed.success
    if (confirmed.failure._tag !== "ChargeError") return yield* confirmed.failure
    error = confirmed.failure
  }
})
