/**
 * The steps of one charge: claim, reserve, create, attach, confirm, settle, release. The order and what follows each
 * failure is `docs/protocol.md`; this module is that page in code. It knows no driver and makes no call inside a
 * database transaction.
 */
import {
  ChargeConflict, ChargeError, ChargeGateway, ChargeInProgress, ChargePause, type ChargeKey, type ChargeOutcome, ChargeQuarantined,
  type ChargeRequest, type ClaimedCharge, type ClaimExtras, chargeTerms, FaultPoint, InvalidRequest, LeaseLost, Ledger, LedgerError, type LedgerErrorReason,
  movedNothing, periodHasBegun, type PipelineError, Rejected, RevisionNotOpened, SpendCap, type GatewayPayment, Tracing
} from "@purser/core"
import { Cause, Clock, type Config, Context, Deferred, Effect, Exit, Layer, Metric, Option, Result } from "effect"
import { nextAttemptAfterMs } from "./DunningPolicy.ts"
import { EngineMetrics, stateWord } from "./EngineMetrics.ts"
import { retryAfterFailure } from "./internal/backoff.ts"
import { mismatchOf } from "./internal/evidence.ts"
import { forCharge, guardGateway } from "./internal/gate.ts"
import { confirmUntilKnown, look, obtain, orderOf, patiently, prepareDraft } from "./internal/gatewaySteps.ts"
import { makeLeaseKeeper } from "./internal/leaseKeeper.ts"
import { holdsOtherMethod, isDeclinedNow, outcomeOfPayment, outcomeOfRefusal } from "./internal/outcomes.ts"
import { makeSteps } from "./internal/steps.ts"
import { PipelineOptions } from "./PipelineOptions.ts"

const generationsMax = 5

/** What the claim did beside: the room that it took, and the object that it named, which nobody has been asked to pay yet. */
interface Begun {
  readonly hasRoom: boolean
  readonly unsent: GatewayPayment | undefined
}
const noObject: Effect.Effect<undefined> = Effect.succeed(undefined)
const nothingBegun: Begun = { hasRoom: false, unsent: undefined }

/** What one run of the steps knows of itself. */
interface Standing {
  /** When its lease was taken, by this process's clock. */
  readonly takenAtMs: number
  /** Whether it took the room of this attempt itself, and has held the lease since. */
  readonly hasRoom: boolean
  /** The processor, with this charge's lease held during every call. */
  readonly gateway: ChargeGateway["Service"]
}

/** Charges one request, or goes on with a claimed one. Every method needs nothing. */
export class ChargePipeline extends Context.Service<ChargePipeline, {
  /** Takes a request from claim to outcome. A repeated delivery gets the recorded outcome, or waits for the one in work here. */
  readonly charge: (request: ChargeRequest) => Effect.Effect<ChargeOutcome, PipelineError>
  /** Goes on with a charge that the caller has taken over. */
  readonly resume: (charge: ClaimedCharge) => Effect.Effect<ChargeOutcome, PipelineError>
  /** Gives back the room of charges that moved no money, where an earlier attempt to do so was cut short; answers how many. */
  readonly releaseDue: (limit: number) => Effect.Effect<number, PipelineError>
}>()("@purser/engine/ChargePipeline") {
  /** The pipeline over whatever ledger, cap and gateway the app provides. */
  static readonly layer: Layer.Layer<ChargePipeline, Config.ConfigError, Ledger | SpendCap | ChargeGateway> = Layer.effect(
    ChargePipeline,
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const cap = yield* SpendCap
      const fault = yield* FaultPoint
      const given = yield* Effect.serviceOption(PipelineOptions)
      const settings = Option.isSome(given) ? given.value : yield* PipelineOptions.fromConfig
      // The stores of an app bring the switch along; without one an outage pauses this process alone.
      const shared = yield* Effect.serviceOption(ChargePause)
      const pause = Option.isSome(shared) ? shared.value : Context.get(yield* Layer.build(ChargePause.layerMemory), ChargePause)
      const gateway = yield* guardGateway(yield* ChargeGateway, pause, settings)
      const holdLease = yield* makeLeaseKeeper(ledger)
      const inWork = new Map<ChargeKey, { readonly request: ChargeRequest; readonly done: Deferred.Deferred<ChargeOutcome, PipelineError> }>()
      const { step, whole } = yield* makeSteps(() => inWork.size)
      const oneStore = ledger.store !== undefined && ledger.store === cap.store

      const ledgerFailure = (chargeKey: ChargeKey, reason: LedgerErrorReason) => new LedgerError({ reason, chargeKey })
      const reservationOf = ({ attempt, lease, request }: ClaimedCharge) => ({
        namespace: request.namespace,
        billingPeriod: request.billingPeriod,
        currency: request.currency,
        chargeKey: lease.chargeKey,
        attempt,
        amountMinor: request.amountMinor
      })

      const release = Effect.fnUntraced(function*(chargeKey: ChargeKey, attempt: number) {
        yield* step("release", Effect.andThen(cap.release(chargeKey, attempt), ledger.markReleased(chargeKey, attempt)))
        yield* fault("after-release", chargeKey)
      })

      /** Room that we took after another holder had settled the charge unpaid and given its room back: nobody else would return it. */
      const releaseLate = Effect.fnUntraced(function*({ attempt, lease }: ClaimedCharge) {
        const row = yield* ledger.find(lease.chargeKey)
        if (row?.attempt === attempt && row.outcome !== null && movedNothing(row.outcome)) yield* release(lease.chargeKey, attempt)
      })

      /** Records a fact. The database may be away for a moment just now, with the money moved: that is worth some patience. */
      const settle = Effect.fnUntraced(function*(charge: ClaimedCharge, paymentIntentId: string | null, outcome: ChargeOutcome) {
        const { chargeKey } = charge.lease
        const answer = yield* step("settle", retryAfterFailure(ledger.settle({
          lease: charge.lease,
          attempt: charge.attempt,
          paymentIntentId,
          outcome,
          pollAfterMs: settings.pollMs,
          ...(outcome._tag === "Declined" ? { nextAttemptAfterMs: yield* nextAttemptAfterMs(settings.dunning, charge.attempt, outcome) } : {})
        }), { while: (error) => error.isRetryable, schedule: settings.retry }))
        yield* fault("after-settle", chargeKey)
        if (answer._tag === "LeaseLost") {
          return yield* ledgerFailure(chargeKey, new LeaseLost({ operation: "settle" }))
        }
        if (answer._tag === "Recorded") {
          yield* checkRecorded(charge, outcome, answer.outcome)
          if (movedNothing(answer.outcome)) yield* Effect.ignore(releaseLate(charge))
        }
        if (answer._tag === "Settled") {
          yield* Metric.update(EngineMetrics.charges.of(stateWord(answer.outcome._tag)), 1)
          if (movedNothing(outcome)) {
            // Left to the sweeper when the store is away: the room is held too long rather than given twice.
            yield* release(chargeKey, charge.attempt).pipe(
              Effect.catch((error) => Effect.logWarning(`room under the cap is given back later: ${error.message}`))
            )
          } else if (outcome._tag === "Succeeded" && charge.resumed) yield* holdRoom(charge)
        }
        return answer.outcome
      })

      /**
       * Another payment than the recorded one: the open case of a gateway that has only its key. It is found, and loud. An object
       * that is paid at most once may name its payment now by one id and now by another.
       */
      const checkRecorded = Effect.fnUntraced(function*(charge: ClaimedCharge, ours: ChargeOutcome, recorded: ChargeOutcome) {
        if (ours._tag !== "Succeeded" || recorded._tag !== "Succeeded" || gateway.isOneCall?.(ours.paymentIntentId) !== true) return
        if (ours.chargeId === null || recorded.chargeId === null || ours.chargeId === recorded.chargeId) return
        return yield* quarantine(charge, `paid twice: ${recorded.chargeId} is recorded, and ${ours.chargeId} was paid too; refund one of them`)
      })

      /** A payment found late may have lost its room: take it back whatever the cap says, and be loud. */
      const holdRoom = Effect.fnUntraced(function*(charge: ClaimedCharge) {
        const { request } = charge
        const over = yield* cap.reserveByForce(reservationOf(charge)).pipe(
          Effect.catch((error) => Effect.as(Effect.logError(`a payment holds no room under the cap: ${error.message}`), 0n))
        )
        if (over > 0n) {
          yield* Metric.update(EngineMetrics.overruns, 1)
          yield* Effect.logError(`${request.billingPeriod} ${request.currency} is ${over} minor units over its cap`)
        }
      })

      const reject = (charge: ClaimedCharge, code: string, detail: string) =>
        settle(charge, charge.paymentIntentId, new Rejected({ chargeKey: charge.lease.chargeKey, alreadySettled: false, code, detail }))

      const quarantine = Effect.fnUntraced(function*(charge: ClaimedCharge, detail: string) {
        yield* Effect.logError(`quarantined: ${detail}`)
        yield* ledger.quarantine(charge.lease, detail)
        yield* Metric.update(EngineMetrics.quarantined, 1)
        return yield* ledgerFailure(charge.lease.chargeKey, new ChargeQuarantined({ detail }))
      })

      /** Takes room; `undefined` when it was taken, else the outcome of the refusal. */
      const reserve = Effect.fnUntraced(function*(charge: ClaimedCharge) {
        const taken = yield* Effect.result(step("reserve", cap.reserve(reservationOf(charge))))
        yield* fault("after-reserve", charge.lease.chargeKey)
        if (Result.isSuccess(taken)) return undefined
        const { reason } = taken.failure
        if (reason._tag === "CapUnavailable") return yield* taken.failure
        const code = { CapExceeded: "cap_exceeded", CapMissing: "cap_missing", CapClosed: "cap_closed", CapAlreadyOpen: "cap_already_open" }[reason._tag]
        return yield* reject(charge, code, reason.message)
      })

      /** Decides the charge from an object whose state is final for this attempt. */
      const conclude = (charge: ClaimedCharge, payment: GatewayPayment): Effect.Effect<ChargeOutcome, PipelineError> => {
        const outcome = outcomeOfPayment(charge, payment)
        return outcome === undefined ? Effect.die(new Error(`Bug: ${payment.status} concludes nothing`)) : settle(charge, payment.id, outcome)
      }

      /** A certain refusal of the processor becomes the charge's outcome. */
      const refused = (charge: ClaimedCharge, paymentIntentId: string | null, error: ChargeError): Effect.Effect<ChargeOutcome, PipelineError> => {
        const outcome = outcomeOfRefusal(charge, paymentIntentId, error.reason)
        return outcome === undefined ? Effect.fail(error) : settle(charge, paymentIntentId, outcome)
      }

      const onRefusal = (charge: ClaimedCharge, paymentIntentId: string | null) => <A extends ChargeOutcome>(
        effect: Effect.Effect<A, PipelineError>
      ): Effect.Effect<ChargeOutcome, PipelineError> =>
        Effect.catchIf(
          effect,
          (error) => error._tag === "ChargeError" && error.outcome === "not_charged" && !error.isRetryable,
          (error) => error._tag === "ChargeError" ? refused(charge, paymentIntentId, error) : Effect.fail(error)
        )

      /** No other can have taken the charge over yet. */
      const isFresh = (charge: ClaimedCharge, { takenAtMs }: Standing) =>
        Effect.map(Clock.currentTimeMillis, (nowMs) => nowMs - takenAtMs < charge.leaseLeftMs / 2)

      /**
       * The lease must outlast what comes; a worker that lost it stops here. Where an object is paid at most once, going on
       * would be safe. Where only a key says so, the database is asked before each call, whatever our own clock says.
       */
      const keepLease = Effect.fnUntraced(function*(charge: ClaimedCharge, id: string, at: Standing) {
        if ((yield* isFresh(charge, at)) && gateway.isOneCall?.(id) !== true) return
        if (!(yield* ledger.extend(charge.lease))) return yield* leaseLost(charge, "confirm")
      })

      const leaseLost = (charge: ClaimedCharge, operation: string) => ledgerFailure(charge.lease.chargeKey, new LeaseLost({ operation }))

      const defaultMethod = (charge: ClaimedCharge, at: Standing) => patiently(settings, at.gateway.defaultPaymentMethod(orderOf(charge)))

      /** A later attempt of a charge that names no method reads the customer's default one anew, once, before its first confirm. */
      const freezeMethod = Effect.fnUntraced(function*(charge: ClaimedCharge, paymentIntentId: string, at: Standing) {
        const paymentMethod = yield* defaultMethod(charge, at)
        const { generation, lease } = charge
        const attached = yield* step("attach", ledger.attach({ lease, generation, paymentIntentId, paymentMethod }))
        return attached._tag === "Attached" ? paymentMethod : yield* leaseLost(charge, "attach")
      })

      const confirm = Effect.fnUntraced(function*(charge: ClaimedCharge, id: string, at: Standing): Effect.fn.Return<ChargeOutcome, PipelineError> {
        const { chargeKey } = charge.lease
        // Room that this run took a moment ago is still there: only who takes a charge over can give it back.
        const refusal = at.hasRoom && (yield* isFresh(charge, at)) ? undefined : yield* reserve(charge)
        if (refusal !== undefined) return refusal
        const paymentMethod = charge.paymentMethod ?? (yield* freezeMethod(charge, id, at))
        const beforeTry = holdLease(charge)(pause.whenOpen).pipe(
          Effect.andThen(keepLease(charge, id, at)),
          Effect.andThen(fault("before-confirm", chargeKey))
        )
        return yield* step("confirm", confirmUntilKnown(at.gateway, settings, charge, { id, paymentMethod }, beforeTry, fault("after-confirm", chargeKey))).pipe(
          Effect.flatMap((payment) => decide(charge, payment, at)),
          Effect.catchIf(
            (error) => error.reason._tag === "KeyReused" && gateway.isOneCall?.(id) === true,
            () => quarantine(charge, "the idempotency key was used with other parameters: another program may have charged this")
          ),
          onRefusal(charge, id)
        )
      })

      /** Goes on from what the object says. */
      const decide = (charge: ClaimedCharge, payment: GatewayPayment, at: Standing): Effect.Effect<ChargeOutcome, PipelineError> => {
        const mismatch = mismatchOf(charge, payment)
        if (mismatch !== undefined) return quarantine(charge, mismatch)
        switch (payment.status) {
          case "draft":
            return Effect.flatMap(prepareDraft(at.gateway, settings, charge, payment.id), (ready) => decide(charge, ready, at))
          case "unconfirmed":
          case "declined":
            // A charge without an object of its own names its attempt: that refusal is the answer, and asking again another one.
            if (payment.status === "declined" && gateway.isOneCall?.(payment.id) === true) return conclude(charge, payment)
            if (isDeclinedNow(charge, payment)) return conclude(charge, payment)
            // What was accepted and failed later is a decline of its attempt: asking again would be another attempt.
            return charge.state === "processing"
              ? conclude(charge, { ...payment, status: "declined" })
              : confirm(charge, payment.id, at)
          case "canceled":
            return renew(charge, payment.id, at)
          case "requires_action":
            return charge.state === "attached" && holdsOtherMethod(charge, payment)
              ? confirm(charge, payment.id, at)
              : conclude(charge, payment)
          default:
            return conclude(charge, payment)
        }
      }

      const renew = Effect.fnUntraced(function*(charge: ClaimedCharge, id: string, at: Standing): Effect.fn.Return<ChargeOutcome, PipelineError> {
        if (charge.generation >= generationsMax) {
          return yield* quarantine(charge, `${generationsMax} payment objects were canceled at the processor`)
        }
        if (!(yield* ledger.renew({ lease: charge.lease, generation: charge.generation, paymentIntentId: id }))) {
          return yield* leaseLost(charge, "renew")
        }
        const next: ClaimedCharge = {
          ...charge,
          state: "claimed",
          generation: charge.generation + 1,
          paymentIntentId: null,
          paymentMethod: charge.chosenMethod
        }
        return yield* fromClaimed(next, at)
      })

      const fromClaimed = Effect.fnUntraced(function*(charge: ClaimedCharge, at: Standing): Effect.fn.Return<ChargeOutcome, PipelineError> {
        const { chargeKey } = charge.lease
        const refusal = at.hasRoom ? undefined : yield* reserve(charge)
        if (refusal !== undefined) return refusal
        yield* fault("before-create", chargeKey)
        const payment = yield* step("create", obtain(at.gateway, settings, charge))
        yield* fault("after-create", chargeKey)
        const mismatch = mismatchOf(charge, payment)
        if (mismatch !== undefined) return yield* quarantine(charge, mismatch)
        const paymentMethod = charge.paymentMethod ?? (yield* defaultMethod(charge, at))
        const attached = yield* step("attach", ledger.attach({ lease: charge.lease, generation: charge.generation, paymentIntentId: payment.id, paymentMethod }))
        yield* fault("after-attach", chargeKey)
        if (attached._tag === "Lost") {
          // Where no object has won yet, the next holder is given this very one by its key: it is left to them.
          if (attached.winnerId !== null && attached.winnerId !== payment.id) yield* cancelOrphan(charge, payment, at)
          return yield* leaseLost(charge, "attach")
        }
        return yield* decide({ ...charge, state: "attached", paymentIntentId: payment.id, paymentMethod }, payment, { ...at, hasRoom: true })
      })

      /** Nobody knows this object's id but us, so that nobody can confirm it; leaving it would cost nothing but order. */
      const cancelOrphan = (charge: ClaimedCharge, payment: GatewayPayment, at: Standing) =>
        payment.status !== "unconfirmed" && payment.status !== "draft"
          ? quarantine(charge, `${payment.id} is ${payment.status}, but another object is attached`)
          : at.gateway.cancel(orderOf(charge), payment.id).pipe(
            Effect.catch((error) => Effect.logWarning(`orphan ${payment.id} is left unconfirmed: ${error.message}`))
          )

      /** The places that a charge passes in the act of its claim. */
      const passBegun = Effect.fnUntraced(function*(chargeKey: ChargeKey, { hasRoom, unsent }: Begun) {
        yield* fault("after-claim", chargeKey)
        if (hasRoom) yield* fault("after-reserve", chargeKey)
        if (unsent === undefined) return
        for (const place of ["before-create", "after-create", "after-attach"] as const) yield* fault(place, chargeKey)
      })

      const proceed = (charge: ClaimedCharge, begun: Begun = nothingBegun): Effect.Effect<ChargeOutcome, PipelineError> =>
        Effect.gen(function*() {
          yield* passBegun(charge.lease.chargeKey, begun)
          const at: Standing = { takenAtMs: yield* Clock.currentTimeMillis, hasRoom: begun.hasRoom, gateway: forCharge(gateway, holdLease, charge) }
          const id = charge.paymentIntentId
          if (id === null) return yield* onRefusal(charge, null)(fromClaimed(charge, at))
          if (begun.unsent !== undefined) return yield* onRefusal(charge, id)(decide(charge, begun.unsent, at))
          // Past the look, a certain refusal comes before this attempt's confirm was ever sent, or from confirm itself.
          return yield* onRefusal(charge, id)(decide(charge, yield* step("look", look(at.gateway, settings, charge, id)), at))
        }).pipe(
          // Unsettled for now: others may go on after a while, and at once when this worker is being stopped.
          Effect.tapError((error) =>
            error._tag !== "LedgerError"
              ? Effect.ignore(ledger.handBack(charge.lease, settings.handBackMs, error.message))
              : Effect.ignore(releaseLate(charge))
          ),
          Effect.onInterrupt(() => Effect.ignore(ledger.handBack(charge.lease, 0, "the worker was stopped"))),
          Effect.annotateLogs({ chargeKey: charge.lease.chargeKey })
        )

      /** The object of a first claim whose name is known beforehand. After a restore it must be looked for before anything is made. */
      const unsentOf = (request: ChargeRequest, chargeKey: ChargeKey): Effect.Effect<GatewayPayment | undefined> =>
        gateway.unsent === undefined || request.paymentMethod === undefined || settings.restorePointMs !== undefined
          ? noObject
          : Effect.map(Clock.currentTimeMillis, (nowMs) => gateway.unsent!({ chargeKey, request, generation: 1, attempt: 1 }, nowMs))

      const extrasOf = ({ paymentMethod }: ChargeRequest, unsent: GatewayPayment | undefined): ClaimExtras =>
        unsent === undefined || paymentMethod === undefined ? { room: oneStore } : { room: oneStore, object: { id: unsent.id, paymentMethod } }

      const claimAndProceed = Effect.fnUntraced(function*(request: ChargeRequest, chargeKey: ChargeKey): Effect.fn.Return<ChargeOutcome, PipelineError> {
        yield* fault("before-claim", chargeKey)
        const unsent = yield* unsentOf(request, chargeKey)
        const answer = yield* step("claim", ledger.claim(request, settings.worker, extrasOf(request, unsent)))
        switch (answer._tag) {
          case "Claimed": {
            const { charge, hasRoom = false } = answer
            // A charge that was attached before says so by being resumed.
            return yield* proceed(charge, { hasRoom, unsent: charge.state === "attached" && !charge.resumed ? unsent : undefined })
          }
          case "AlreadySettled":
            yield* Metric.update(EngineMetrics.redeliveries.of("settled"), 1)
            return answer.outcome
          case "InProgress":
            yield* Metric.update(EngineMetrics.redeliveries.of("held"), 1)
            return yield* ledgerFailure(chargeKey, new ChargeInProgress({ leaseLeftMs: answer.leaseLeftMs }))
          case "Quarantined":
            return yield* ledgerFailure(chargeKey, new ChargeQuarantined({ detail: answer.detail }))
          case "Unopened":
            return yield* ledgerFailure(chargeKey, new RevisionNotOpened())
          case "Conflict":
            return yield* ledgerFailure(chargeKey, new ChargeConflict({ expected: answer.expected, actual: answer.actual }))
        }
      })

      const charge = Effect.fnUntraced(function*(request: ChargeRequest): Effect.fn.Return<ChargeOutcome, PipelineError> {
        const chargeKey = request.chargeKey
        if (request.senderKey !== undefined && request.senderKey !== chargeKey) {
          yield* Metric.update(EngineMetrics.foreignKeys, 1)
          yield* Effect.annotateLogs(Effect.logInfo("the sender's idempotency key differs from ours; ours is used"), { chargeKey })
        }
        if (request.allowFuture !== true && !periodHasBegun(request.billingPeriod, yield* Clock.currentTimeMillis)) {
          return yield* new ChargeError({
            reason: new InvalidRequest({
              param: "billing_period",
              code: "period_not_begun",
              detail: `${request.billingPeriod} has not begun, and the request does not allow that`
            }),
            chargeKey,
            requestId: null
          })
        }
        const sibling = inWork.get(chargeKey)
        const terms = chargeTerms(request)
        if (sibling !== undefined && JSON.stringify(chargeTerms(sibling.request)) === JSON.stringify(terms)) {
          yield* Metric.update(EngineMetrics.redeliveries.of("joined"), 1)
          return yield* Deferred.await(sibling.done)
        }
        if (sibling !== undefined) return yield* Effect.andThen(pause.whenOpen, claimAndProceed(request, chargeKey))
        const done = Deferred.makeUnsafe<ChargeOutcome, PipelineError>()
        inWork.set(chargeKey, { request, done })
        // While charging is paused requests wait here, unclaimed; those who send them again join them.
        return yield* Effect.andThen(pause.whenOpen, claimAndProceed(request, chargeKey)).pipe(
          Effect.onExit((exit) => {
            inWork.delete(chargeKey)
            const failed = Exit.isFailure(exit) ? Cause.findError(exit.cause) : undefined
            const counted = failed !== undefined && Result.isSuccess(failed) ? Metric.update(EngineMetrics.unsettled.of(failed.success.reason._tag), 1) : Effect.void
            // A delivery that waits here must not die with the one that was interrupted.
            return Effect.andThen(counted, Deferred.done(done, Exit.hasInterrupts(exit)
              ? Exit.fail(ledgerFailure(chargeKey, new ChargeInProgress({ leaseLeftMs: 0 })))
              : exit))
          })
        )
      })

      const said = (outcome: ChargeOutcome) => ({ "purser.outcome": stateWord(outcome._tag) })
      return ChargePipeline.of({
        charge: (request) => Tracing.traced("ChargePipeline.charge", whole(charge(request)), Tracing.ofCharge(request), said),
        resume: (claimed) => Tracing.traced("ChargePipeline.resume", proceed(claimed), Tracing.ofCharge(claimed.request), said),
        releaseDue: Effect.fnUntraced(function*(limit) {
          const due = yield* ledger.releaseDue(limit)
          yield* Effect.forEach(due, ({ attempt, chargeKey }) => release(chargeKey, attempt), { concurrency: 64, discard: true })
          return due.length
        })
      })
    })
  )
}
