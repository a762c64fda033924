/**
 * The steps of one charge: claim, reserve, create, attach, confirm, settle, release. The order and what follows each
 * failure is `docs/protocol.md`; this module is that page in code. It knows no driver and makes no call inside a
 * database transaction.
 */
import {
  type ChargeError, ChargeGateway, ChargePause, type ChargeKey, type ChargeOutcome, ChargeQuarantined, type ChargeRecord, type ChargeRequest, type ClaimedCharge, FaultPoint, LeaseLost, Ledger, LedgerError,
  type LedgerErrorReason, Money, movedNothing, noFault, type PipelineError, Rejected, type SettleAnswer, SpendCap,
  type GatewayPayment, Tracing
} from "@purser/core"
import { Clock, type Config, Context, Effect, Fiber, Layer, Metric, Option, Result } from "effect"
import { nextAttemptAfterMs } from "./DunningPolicy.ts"
import { EngineMetrics, stateWord } from "./EngineMetrics.ts"
import { knowsOurKey, noteForeignKey, refusalOf, unclaimed } from "./internal/admission.ts"
import { retryAfterFailure, untilStoreAnswers } from "./internal/backoff.ts"
import { mismatchOf } from "./internal/evidence.ts"
import { guardGateway } from "./internal/gate.ts"
import { type ConfirmTries, ConfirmTry, confirmUntilKnown, look, obtain, Order, orderOf, patiently, prepareDraft } from "./internal/gatewaySteps.ts"
import { makeInWork } from "./internal/inWork.ts"
import { makeLeaseKeeper } from "./internal/leaseKeeper.ts"
import { makeLeave } from "./internal/leave.ts"
import { Fact, holdsOtherMethod, isDeclinedNow, outcomeOfPayment, outcomeOfRefusal } from "./internal/outcomes.ts"
import { Begun, extrasOf, nothingBegun, passBegun, Standing } from "./internal/standing.ts"
import { makeSteps, said } from "./internal/steps.ts"
import { notingKey, underItsRun } from "./internal/underItsRun.ts"
import { PipelineOptions } from "./PipelineOptions.ts"
import type { TakenOver } from "./TakenOver.ts"

const generationsMax = 5
const succeededCharges = EngineMetrics.charges.of(stateWord("Succeeded"))

/** Charges one request, or goes on with a claimed one. Every method needs nothing. */
export class ChargePipeline extends Context.Service<ChargePipeline, {
  /** Takes a request from claim to outcome. A repeated delivery gets the recorded outcome, or waits for the one in work here. */
  readonly charge: (request: ChargeRequest) => Effect.Effect<ChargeOutcome, PipelineError>
  /** Goes on with a charge that the caller has taken over, just now unless `taken` says more. */
  readonly resume: (charge: ClaimedCharge, taken?: TakenOver) => Effect.Effect<ChargeOutcome, PipelineError>
  /** Gives back the room of charges that moved no money, where an earlier attempt to do so was cut short; answers how many. */
  readonly releaseDue: (limit: number) => Effect.Effect<number, PipelineError>
  /** Gives back room that the caller took for a charge which others have settled unpaid: nobody else would return it. */
  readonly releaseUnpaid: (chargeKey: ChargeKey) => Effect.Effect<void, LedgerError>
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
      const clock = yield* Clock.Clock
      const inWork = makeInWork()
      const { step, stepNow, wholeNow } = yield* makeSteps(inWork.size)
      const oneStore = ledger.store !== undefined && ledger.store === cap.store
      const isQuiet = fault === noFault
      const whenOpen = <A, E>(next: () => Effect.Effect<A, E>) => pause.isOpen?.() === true ? next() : Effect.andThen(pause.whenOpen, Effect.suspend(next))
      const patience = { while: (error: LedgerError) => error.isRetryable, schedule: settings.retry }

      const ledgerFailure = (chargeKey: ChargeKey, reason: LedgerErrorReason) => new LedgerError({ reason, chargeKey })
      const reservationOf = ({ attempt, lease: { chargeKey }, request: { amountMinor, billingPeriod, currency, namespace } }: ClaimedCharge) =>
        ({ namespace, billingPeriod, currency, chargeKey, attempt, amountMinor })

      const release = Effect.fnUntraced(function*(chargeKey: ChargeKey, attempt: number) {
        yield* step("release", Effect.andThen(cap.release(chargeKey, attempt), ledger.markReleased(chargeKey, attempt)))
        yield* fault("after-release", chargeKey)
      })

      /**
       * Room that was taken after others had settled the charge unpaid and given its room back: nobody else would return it. At whatever
       * attempt the row ended: who asks for the next one has reserved for that, and keeps it.
       */
      const releaseEnded = (row: ChargeRecord | undefined) =>
        row !== undefined && row.outcome !== null && movedNothing(row.outcome) ? untilStoreAnswers(settings, release(row.chargeKey, row.attempt)) : Effect.void
      const releaseLate = ({ lease }: ClaimedCharge) => Effect.flatMap(ledger.find(lease.chargeKey), releaseEnded)

      /** Records a fact. The database may be away for a moment just now, with the money moved: that is worth some patience. */
      const settle = (charge: ClaimedCharge, paymentIntentId: string | null, outcome: ChargeOutcome): Effect.Effect<ChargeOutcome, PipelineError> => {
        const fact = new Fact(charge, paymentIntentId, outcome, settings.pollMs)
        const asked = outcome._tag === "Declined"
          ? Effect.flatMap(nextAttemptAfterMs(settings.dunning, charge.attempt, outcome), (afterMs) => ledger.settle({ ...fact, nextAttemptAfterMs: afterMs }))
          : ledger.settle(fact)
        return Effect.flatMap(stepNow("settle", retryAfterFailure(asked, patience)), (answer) => {
          if (!isQuiet || answer._tag !== "Settled" || outcome._tag !== "Succeeded" || charge.resumed || answer.late) return settled(charge, outcome, answer)
          succeededCharges.updateUnsafe(1, Fiber.getCurrent()!.context)
          return Effect.succeed(answer.outcome)
        })
      }

      const settled = Effect.fnUntraced(function*(charge: ClaimedCharge, outcome: ChargeOutcome, answer: SettleAnswer) {
        const { chargeKey } = charge.lease
        yield* fault("after-settle", chargeKey)
        if (answer._tag === "LeaseLost") return yield* leaseLost(charge, "settle")
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
          } else if (outcome._tag === "Succeeded" && (charge.resumed || answer.late)) yield* holdRoom(charge)
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

      /** A payment found late may have lost its room: take it back whatever the cap says, and be loud. Nobody asks for it later: it is worth some patience. */
      const holdRoom = Effect.fnUntraced(function*(charge: ClaimedCharge) {
        const { request } = charge
        const unable = (error: { readonly message: string }) => Effect.as(Effect.logError(`a payment holds no room under the cap: ${error.message}`), 0n)
        const asked = Effect.catchIf(cap.reserveByForce(reservationOf(charge)), (error) => !error.isRetryable, unable)
        const over = yield* Effect.catch(untilStoreAnswers(settings, asked), unable)
        if (over > 0n) {
          yield* Metric.update(EngineMetrics.overruns, 1)
          yield* Effect.logError(`${request.billingPeriod} ${request.currency} is ${Money.text(over, request.currency)} over its cap`)
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

      const onRefusal = (charge: ClaimedCharge, paymentIntentId: string | null, error: PipelineError): Effect.Effect<ChargeOutcome, PipelineError> =>
        error._tag === "ChargeError" && error.outcome === "not_charged" && !error.isRetryable ? refused(charge, paymentIntentId, error) : Effect.fail(error)

      const catchRefusal = (charge: ClaimedCharge, paymentIntentId: string | null, effect: Effect.Effect<ChargeOutcome, PipelineError>) =>
        Effect.catch(effect, (error) => onRefusal(charge, paymentIntentId, error))

      /**
       * Before money is asked for: charging is not paused, and the lease outlasts what comes; a worker that lost it stops here. Where
       * an object is paid at most once, going on would be safe. Where only a key says so, the database is asked before each call,
       * whatever our own clock says.
       */
      const beforeConfirm = (charge: ClaimedCharge, at: Standing, oneCall: boolean): Effect.Effect<void, PipelineError> =>
        Effect.andThen(at.hold(pause.whenOpen), Effect.andThen(keepLease(charge, at, oneCall), fault("before-confirm", charge.lease.chargeKey)))

      /** Nothing is to be waited for, or asked, before this charge's money is asked for. */
      const mayConfirm = (at: Standing, oneCall: boolean) =>
        isQuiet && !oneCall && pause.isOpen?.() === true && at.isFresh(clock.currentTimeMillisUnsafe())

      const keepLease = Effect.fnUntraced(function*(charge: ClaimedCharge, at: Standing, oneCall: boolean) {
        if (!oneCall && at.isFresh(clock.currentTimeMillisUnsafe())) return
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

      const confirm = (charge: ClaimedCharge, id: string, at: Standing): Effect.Effect<ChargeOutcome, PipelineError> => {
        // Room that this run took a moment ago is still there: only who takes a charge over can give it back.
        const hasRoom = at.hasRoom && at.isFresh(clock.currentTimeMillisUnsafe())
        return hasRoom && charge.paymentMethod !== null ? ask(charge, id, charge.paymentMethod, at) : askPrepared(charge, id, at, hasRoom)
      }

      const askPrepared = Effect.fnUntraced(function*(charge: ClaimedCharge, id: string, at: Standing, hasRoom: boolean): Effect.fn.Return<ChargeOutcome, PipelineError> {
        const refusal = hasRoom ? undefined : yield* reserve(charge)
        if (refusal !== undefined) return refusal
        return yield* ask(charge, id, charge.paymentMethod ?? (yield* freezeMethod(charge, id, at)), at)
      })

      class Tries implements ConfirmTries {
        readonly oneCall: boolean
        private readonly charge: ClaimedCharge
        private readonly id: string
        private readonly paymentMethod: string
        private readonly at: Standing

        constructor(charge: ClaimedCharge, id: string, paymentMethod: string, at: Standing) {
          this.oneCall = gateway.isOneCall?.(id) ?? false
          this.charge = charge
          this.id = id
          this.paymentMethod = paymentMethod
          this.at = at
        }

        once(keySuffix: string): Effect.Effect<GatewayPayment, PipelineError> {
          const { at, charge, id, oneCall, paymentMethod } = this
          const call = at.hold(gateway.confirm(orderOf(charge), new ConfirmTry(id, paymentMethod, charge.attempt, keySuffix)))
          if (mayConfirm(at, oneCall)) return call
          return Effect.andThen(beforeConfirm(charge, at, oneCall), isQuiet ? call : Effect.flatMap(Effect.result(call), (answer) =>
            Effect.andThen(fault("after-confirm", charge.lease.chargeKey), Effect.fromResult(answer))))
        }

        get look(): Effect.Effect<GatewayPayment, ChargeError> {
          return look(this.at.gateway, settings, this.charge, this.id)
        }
      }

      const ask = (charge: ClaimedCharge, id: string, paymentMethod: string, at: Standing): Effect.Effect<ChargeOutcome, PipelineError> => {
        const tries = new Tries(charge, id, paymentMethod, at)
        const onError = (error: PipelineError) =>
          error.reason._tag === "KeyReused" && tries.oneCall
            ? quarantine(charge, "the idempotency key was used with other parameters: another program may have charged this")
            : onRefusal(charge, id, error)
        return Effect.matchCauseEffect(stepNow("confirm", confirmUntilKnown(settings, charge, tries)), {
          onSuccess: (payment): Effect.Effect<ChargeOutcome, PipelineError> =>
            // No refusal comes of a payment any more.
            payment.status === "succeeded" ? decide(charge, payment, at) : Effect.catch(decide(charge, payment, at), onError),
          onFailure: (cause) => Effect.catch(Effect.failCause(cause), onError)
        })
      }

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
          if (attached.winnerId !== null && !isSameObject(attached.winnerId, payment.id)) yield* cancelOrphan(charge, payment, at)
          return yield* leaseLost(charge, "attach")
        }
        return yield* decide({ ...charge, state: "attached", paymentIntentId: payment.id, paymentMethod }, payment, at.withRoom())
      })

      /** A key names one charge, whatever name it was given on the way to it: by when it was claimed, or by when it was found. */
      const isSameObject = (one: string, other: string) => one === other || (gateway.isOneCall?.(one) === true && gateway.isOneCall(other))

      /** Nobody knows this object's id but us, so that nobody can confirm it; leaving it would cost nothing but order. */
      const cancelOrphan = (charge: ClaimedCharge, payment: GatewayPayment, at: Standing) =>
        payment.status !== "unconfirmed" && payment.status !== "draft"
          ? quarantine(charge, `${payment.id} is ${payment.status}, but another object is attached`)
          : at.gateway.cancel(orderOf(charge), payment.id).pipe(
            Effect.catch((error) => Effect.logWarning(`orphan ${payment.id} is left unconfirmed: ${error.message}`))
          )

      const goOn = (charge: ClaimedCharge, askedAtMs: number, { hasRoom, unsent }: Begun): Effect.Effect<ChargeOutcome, PipelineError> => {
        const at = new Standing(charge, askedAtMs, hasRoom, holdLease(charge), gateway)
        const id = charge.paymentIntentId
        if (id === null) return catchRefusal(charge, null, fromClaimed(charge, at))
        if (unsent !== undefined) return decide(charge, unsent, at)
        // Past the look, a certain refusal comes before this attempt's confirm was ever sent, or from confirm itself.
        return catchRefusal(charge, id, Effect.flatMap(step("look", look(at.gateway, settings, charge, id)), (payment) => decide(charge, payment, at)))
      }

      const leave = makeLeave(ledger, settings.handBackMs, releaseLate)
      const proceed = (charge: ClaimedCharge, askedAtMs: number, begun: Begun): Effect.Effect<ChargeOutcome, PipelineError> =>
        notingKey(
          charge.lease.chargeKey,
          () => isQuiet ? goOn(charge, askedAtMs, begun) : Effect.andThen(passBegun(fault, charge.lease.chargeKey, begun), Effect.suspend(() => goOn(charge, askedAtMs, begun))),
          (cause) => leave(charge, cause)
        )

      /** The object of a first claim whose name is known beforehand. After a restore it must be looked for before anything is made. */
      const unsentOf = (request: ChargeRequest, chargeKey: ChargeKey, nowMs: number): GatewayPayment | undefined =>
        request.paymentMethod === undefined || settings.restorePointMs !== undefined
          ? undefined
          : gateway.unsent?.(new Order(chargeKey, request, 1, 1), nowMs)

      /** A name that is older than its claim, since charging was paused meanwhile, is looked for from earlier on. */
      const claimAndProceed = (request: ChargeRequest, chargeKey: ChargeKey, nowMs: number): Effect.Effect<ChargeOutcome, PipelineError> => {
        const unsent = unsentOf(request, chargeKey, nowMs)
        const askedAtMs = clock.currentTimeMillisUnsafe()
        const claimed = Effect.flatMap(stepNow("claim", ledger.claim(request, settings.worker, extrasOf(request, oneStore, unsent))), (answer) => {
          if (answer._tag !== "Claimed") return unclaimed(chargeKey, answer)
          const { charge, hasRoom = false } = answer
          // A charge that was attached before says so by being resumed.
          return proceed(charge, askedAtMs, new Begun(hasRoom, charge.state === "attached" && !charge.resumed ? unsent : undefined))
        })
        return isQuiet ? claimed : Effect.andThen(fault("before-claim", chargeKey), claimed)
      }

      const charge = (request: ChargeRequest): Effect.Effect<ChargeOutcome, PipelineError> =>
        Effect.suspend(() => {
          const { chargeKey } = request
          const nowMs = clock.currentTimeMillisUnsafe()
          const refusal = refusalOf(request, nowMs)
          // While charging is paused requests wait here, unclaimed; those who send them again join them.
          const charged = refusal === undefined ? inWork.share(request, () => whenOpen(() => claimAndProceed(request, chargeKey, nowMs))) : Effect.fail(refusal)
          return wholeNow("ChargePipeline.charge", knowsOurKey(request) ? charged : Effect.andThen(noteForeignKey(chargeKey), charged), request)
        })

      return ChargePipeline.of({
        charge,
        resume: (claimed, taken) => {
          const askedAtMs = taken?.askedAtMs ?? clock.currentTimeMillisUnsafe()
          const resumed = Tracing.traced("ChargePipeline.resume", underItsRun(claimed.request, proceed(claimed, askedAtMs, nothingBegun)), Tracing.ofCharge(claimed.request), said)
          return taken === undefined ? resumed : holdLease(claimed)(taken.turn(resumed))
        },
        releaseDue: Effect.fnUntraced(function*(limit) {
          const due = yield* ledger.releaseDue(limit)
          yield* Effect.forEach(due, ({ attempt, chargeKey }) => release(chargeKey, attempt), { concurrency: 64, discard: true })
          return due.length
        }),
        releaseUnpaid: (chargeKey) => Effect.flatMap(untilStoreAnswers(settings, ledger.find(chargeKey)), releaseEnded)
      })
    })
  )
}
