/**
 * The steps of one charge: claim, reserve, create, attach, confirm, settle, release. The order and what follows each
 * failure is `docs/protocol.md`; this module is that page in code. It knows no driver and makes no call inside a
 * database transaction.
 */
import {
  type ChargeError, ChargeGateway, ChargePause, type ChargeKey, type ChargeOutcome, ChargeQuarantined, type ChargeRequest, type ClaimedCharge, type Declined, FaultPoint, LeaseLost, Ledger, LedgerError,
  type LedgerErrorReason, MetricSeries, movedNothing, noFault, type PipelineError, Rejected, type SettleAnswer, SpendCap,
  type GatewayPayment, Tracing
} from "@purser/core"
import { type Cause, Clock, type Config, Context, Effect, Layer, Metric, Option } from "effect"
import { nextAttemptAfterMs } from "./DunningPolicy.ts"
import { EngineMetrics, stateWord } from "./EngineMetrics.ts"
import { knowsOurKey, noteForeignKey, refusalOf, unclaimed } from "./internal/admission.ts"
import { untilStoreAnswers } from "./internal/backoff.ts"
import { mismatchOf } from "./internal/evidence.ts"
import { guardGateway } from "./internal/gate.ts"
import { type ConfirmTries, ConfirmTry, confirmUntilKnown, look, obtain, Order, orderOf, patiently, prepareDraft } from "./internal/gatewaySteps.ts"
import { type Entry, makeInWork } from "./internal/inWork.ts"
import { makeLeaseKeeper } from "./internal/leaseKeeper.ts"
import { makeLeave } from "./internal/leave.ts"
import { Fact, holdsOtherMethod, isDeclinedNow, outcomeOfPayment, outcomeOfRefusal } from "./internal/outcomes.ts"
import { makeRoom } from "./internal/room.ts"
import { Settling, type SettlingRules } from "./internal/settling.ts"
import { Begun, extrasOf, nothingBegun, passBegun, Standing } from "./internal/standing.ts"
import { makeSteps, Onward, said, type Turn } from "./internal/steps.ts"
import { Noting, notingKey, underItsRun } from "./internal/underItsRun.ts"
import { PipelineOptions } from "./PipelineOptions.ts"
import type { TakenOver } from "./TakenOver.ts"

const generationsMax = 5

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
      const leases = yield* makeLeaseKeeper(ledger)
      const clock = yield* Clock.Clock
      const { inTurn, step, stepNow, stepThen, tried, whole, wholeNow } = yield* makeSteps(() => inWork.size())
      const inWork = makeInWork(whole)
      const countSucceeded = MetricSeries.updateOf(EngineMetrics.charges.of(stateWord("Succeeded")), yield* Effect.context<never>())
      const oneStore = ledger.store !== undefined && ledger.store === cap.store
      const isQuiet = fault === noFault

      const ledgerFailure = (chargeKey: ChargeKey, reason: LedgerErrorReason) => new LedgerError({ reason, chargeKey })
      const room = makeRoom({ cap, fault, ledger, settings, step })

      /** Records a fact. */
      const settle = (charge: ClaimedCharge, paymentIntentId: string | null, outcome: ChargeOutcome): Effect.Effect<ChargeOutcome, PipelineError> => {
        const fact = new Fact(charge, paymentIntentId, outcome, settings.pollMs)
        const asked = outcome._tag === "Declined" ? settleDeclined(charge, outcome, fact) : ledger.settle(fact)
        return tried("settle", asked, new Settling(settling, charge, outcome, asked))
      }
      const settleDeclined = (charge: ClaimedCharge, outcome: Declined, fact: Fact) =>
        Effect.flatMap(nextAttemptAfterMs(settings.dunning, charge.attempt, outcome), (afterMs) => ledger.settle({ ...fact, nextAttemptAfterMs: afterMs }))

      const settling: SettlingRules = {
        patience: { while: (error) => error.isRetryable, schedule: settings.retry },
        answered: (charge, outcome, answer) => {
          if (!isQuiet || answer._tag !== "Settled" || outcome._tag !== "Succeeded" || charge.resumed || answer.late) return settled(charge, outcome, answer)
          countSucceeded(1)
          return Effect.succeed(answer.outcome)
        }
      }

      const settled = Effect.fnUntraced(function*(charge: ClaimedCharge, outcome: ChargeOutcome, answer: SettleAnswer) {
        const { chargeKey } = charge.lease
        yield* fault("after-settle", chargeKey)
        if (answer._tag === "LeaseLost") return yield* leaseLost(charge, "settle")
        if (answer._tag === "Recorded") {
          yield* checkRecorded(charge, outcome, answer.outcome)
          if (movedNothing(answer.outcome)) yield* Effect.ignore(room.releaseLate(charge))
        }
        if (answer._tag === "Settled") {
          yield* Metric.update(EngineMetrics.charges.of(stateWord(answer.outcome._tag)), 1)
          if (movedNothing(outcome)) {
            // Left to the sweeper when the store is away: the room is held too long rather than given twice.
            yield* room.release(chargeKey, charge.attempt).pipe(
              Effect.catch((error) => Effect.logWarning(`room under the cap is given back later: ${error.message}`))
            )
          } else if (outcome._tag === "Succeeded" && (charge.resumed || answer.late)) yield* room.holdLate(charge)
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

      const reject = (charge: ClaimedCharge, code: string, detail: string) =>
        settle(charge, charge.paymentIntentId, new Rejected({ chargeKey: charge.lease.chargeKey, alreadySettled: false, code, detail }))

      const quarantine = Effect.fnUntraced(function*(charge: ClaimedCharge, detail: string) {
        yield* Effect.logError(`quarantined: ${detail}`)
        yield* ledger.quarantine(charge.lease, detail)
        yield* Metric.update(EngineMetrics.quarantined, 1)
        return yield* ledgerFailure(charge.lease.chargeKey, new ChargeQuarantined({ detail }))
      })

      /** Takes room; `undefined` when it was taken, else the outcome of the refusal. */
      const reserve = (charge: ClaimedCharge, turn: Turn) =>
        Effect.flatMap(room.take(charge, turn), (refusal) => refusal === undefined ? Effect.succeed(undefined) : reject(charge, refusal.code, refusal.detail))

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
        const attached = yield* stepNow("attach", ledger.attach({ lease, generation, paymentIntentId, paymentMethod }))
        return attached._tag === "Attached" ? paymentMethod : yield* leaseLost(charge, "attach")
      })

      const confirm = (charge: ClaimedCharge, id: string, at: Standing): Effect.Effect<ChargeOutcome, PipelineError> => {
        // Room that this run took a moment ago is still there: only who takes a charge over can give it back.
        const hasRoom = at.hasRoom && at.isFresh(clock.currentTimeMillisUnsafe())
        return hasRoom && charge.paymentMethod !== null ? ask(charge, id, charge.paymentMethod, at) : askPrepared(charge, id, at, hasRoom)
      }

      const askPrepared = Effect.fnUntraced(function*(charge: ClaimedCharge, id: string, at: Standing, hasRoom: boolean): Effect.fn.Return<ChargeOutcome, PipelineError> {
        const refusal = hasRoom ? undefined : yield* inTurn((turn) => reserve(charge, turn))
        if (refusal !== undefined) return refusal
        return yield* ask(charge, id, charge.paymentMethod ?? (yield* freezeMethod(charge, id, at)), at)
      })

      /** The request for money, and how it goes on from the answer. */
      class Asking extends Onward<GatewayPayment, PipelineError, ChargeOutcome, PipelineError> implements ConfirmTries {
        readonly oneCall: boolean
        private readonly charge: ClaimedCharge
        private readonly id: string
        private readonly paymentMethod: string
        private readonly at: Standing

        constructor(charge: ClaimedCharge, id: string, paymentMethod: string, at: Standing) {
          super()
          this.oneCall = gateway.isOneCall?.(id) ?? false
          this.charge = charge
          this.id = id
          this.paymentMethod = paymentMethod
          this.at = at
        }

        once(keySuffix: string): Effect.Effect<GatewayPayment, PipelineError> {
          const { at, charge, id, oneCall, paymentMethod } = this
          const call = gateway.confirmHeld(leases, charge, orderOf(charge), new ConfirmTry(id, paymentMethod, charge.attempt, keySuffix))
          if (mayConfirm(at, oneCall)) return call
          return Effect.andThen(beforeConfirm(charge, at, oneCall), isQuiet ? call : Effect.flatMap(Effect.result(call), (answer) =>
            Effect.andThen(fault("after-confirm", charge.lease.chargeKey), Effect.fromResult(answer))))
        }

        get look(): Effect.Effect<GatewayPayment, ChargeError> {
          return look(this.at.gateway, settings, this.charge, this.id)
        }

        override again(cause: Cause.Cause<PipelineError>) {
          return confirmUntilKnown(settings, this.charge, this, cause)
        }

        override onSuccess(payment: GatewayPayment): Effect.Effect<ChargeOutcome, PipelineError> {
          const decided = decide(this.charge, payment, this.at)
          // No refusal comes of a payment any more.
          return payment.status === "succeeded" ? decided : Effect.catch(decided, (error) => this.refused(error))
        }

        override onEnd(cause: Cause.Cause<PipelineError>): Effect.Effect<ChargeOutcome, PipelineError> {
          return Effect.catch(Effect.failCause(cause), (error) => this.refused(error))
        }

        private refused(error: PipelineError): Effect.Effect<ChargeOutcome, PipelineError> {
          return error.reason._tag === "KeyReused" && this.oneCall
            ? quarantine(this.charge, "the idempotency key was used with other parameters: another program may have charged this")
            : onRefusal(this.charge, this.id, error)
        }
      }

      const ask = (charge: ClaimedCharge, id: string, paymentMethod: string, at: Standing): Effect.Effect<ChargeOutcome, PipelineError> => {
        const asking = new Asking(charge, id, paymentMethod, at)
        return tried("confirm", asking.once(""), asking)
      }

      /** Goes on from what the object says. */
      const decide = (charge: ClaimedCharge, payment: GatewayPayment, at: Standing): Effect.Effect<ChargeOutcome, PipelineError> => {
        const mismatch = mismatchOf(charge, payment)
        if (mismatch !== undefined) return quarantine(charge, mismatch)
        switch (payment.status) {
          case "draft":
            return decideDraft(charge, payment.id, at)
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

      const decideDraft = (charge: ClaimedCharge, id: string, at: Standing) =>
        Effect.flatMap(prepareDraft(at.gateway, settings, charge, id), (ready) => decide(charge, ready, at))

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

      const fromClaimed = (charge: ClaimedCharge, at: Standing) => inTurn((turn) => prepared(charge, at, turn))

      const prepared = Effect.fnUntraced(function*(charge: ClaimedCharge, at: Standing, turn: Turn): Effect.fn.Return<ChargeOutcome, PipelineError> {
        const { chargeKey } = charge.lease
        const refusal = at.hasRoom ? undefined : yield* reserve(charge, turn)
        if (refusal !== undefined) return refusal
        yield* fault("before-create", chargeKey)
        const payment = yield* turn.begin("create", obtain(at.gateway, settings, charge), isQuiet)
        turn.end()
        yield* fault("after-create", chargeKey)
        const mismatch = mismatchOf(charge, payment)
        if (mismatch !== undefined) return yield* quarantine(charge, mismatch)
        const paymentMethod = charge.paymentMethod ?? (yield* defaultMethod(charge, at))
        const attached = yield* turn.begin("attach", ledger.attach({ lease: charge.lease, generation: charge.generation, paymentIntentId: payment.id, paymentMethod }), isQuiet && charge.paymentMethod !== null)
        turn.end()
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
        const at = new Standing(charge, askedAtMs, hasRoom, leases.hold, gateway)
        const id = charge.paymentIntentId
        if (id === null) return catchRefusal(charge, null, fromClaimed(charge, at))
        if (unsent !== undefined) return decide(charge, unsent, at)
        // Past the look, a certain refusal comes before this attempt's confirm was ever sent, or from confirm itself.
        return catchRefusal(charge, id, lookAndDecide(charge, id, at))
      }
      const lookAndDecide = (charge: ClaimedCharge, id: string, at: Standing) =>
        stepThen("look", look(at.gateway, settings, charge, id), (payment) => decide(charge, payment, at))

      const leave = makeLeave(ledger, settings.handBackMs, room.releaseLate)
      const goOnNoted = (charge: ClaimedCharge, askedAtMs: number, begun: Begun) =>
        Effect.andThen(passBegun(fault, charge.lease.chargeKey, begun), Effect.suspend(() => goOn(charge, askedAtMs, begun)))
      const begin = (charge: ClaimedCharge, askedAtMs: number, begun: Begun) => isQuiet ? goOn(charge, askedAtMs, begun) : goOnNoted(charge, askedAtMs, begun)
      const proceedAlone = (charge: ClaimedCharge, askedAtMs: number, begun: Begun) => notingKey(new Noting<PipelineError>(charge, leave), () => begin(charge, askedAtMs, begun))
      const proceed = (charge: ClaimedCharge, askedAtMs: number, begun: Begun, entry: Entry | undefined): Effect.Effect<ChargeOutcome, PipelineError> => {
        if (entry === undefined) return proceedAlone(charge, askedAtMs, begun)
        entry.note(new Noting<PipelineError>(charge, leave))
        return begin(charge, askedAtMs, begun)
      }

      /** The object of a first claim whose name is known beforehand. After a restore it must be looked for before anything is made. */
      const unsentOf = (request: ChargeRequest, chargeKey: ChargeKey, nowMs: number): GatewayPayment | undefined =>
        request.paymentMethod === undefined || settings.restorePointMs !== undefined
          ? undefined
          : gateway.unsent?.(new Order(chargeKey, request, 1, 1), nowMs)

      /** A name that is older than its claim, since charging was paused meanwhile, is looked for from earlier on. */
      const claimAndProceed = (request: ChargeRequest, nowMs: number, askedAtMs: number, entry: Entry | undefined, sinceNanos?: number): Effect.Effect<ChargeOutcome, PipelineError> => {
        const { chargeKey } = request
        const unsent = unsentOf(request, chargeKey, nowMs)
        const claimed = stepThen("claim", ledger.claim(request, settings.worker, extrasOf(request, oneStore, unsent)), (answer) => {
          if (answer._tag !== "Claimed") return unclaimed(chargeKey, answer)
          const { charge, hasRoom = false } = answer
          // A charge that was attached before says so by being resumed.
          return proceed(charge, askedAtMs, new Begun(hasRoom, charge.state === "attached" && !charge.resumed ? unsent : undefined), entry)
        }, sinceNanos)
        return isQuiet ? claimed : Effect.andThen(fault("before-claim", chargeKey), claimed)
      }

      const claimWhenOpen = (request: ChargeRequest, nowMs: number, entry: Entry | undefined) =>
        Effect.andThen(pause.whenOpen, Effect.suspend(() => claimAndProceed(request, nowMs, clock.currentTimeMillisUnsafe(), entry)))

      /** While charging is paused requests wait here, unclaimed; those who send them again join them. */
      const work = (request: ChargeRequest, nowMs: number, entry: Entry | undefined, sinceNanos?: number) =>
        pause.isOpen?.() === true ? claimAndProceed(request, nowMs, nowMs, entry, sinceNanos) : claimWhenOpen(request, nowMs, entry)

      const charge = (request: ChargeRequest): Effect.Effect<ChargeOutcome, PipelineError> =>
        Effect.suspend(() => {
          const nowMs = clock.currentTimeMillisUnsafe()
          const refusal = refusalOf(request, nowMs)
          const charged = refusal === undefined ? inWork.share(request, nowMs, work) : inWork.refuse(refusal)
          return wholeNow("ChargePipeline.charge", knowsOurKey(request) ? charged : Effect.andThen(noteForeignKey(request.chargeKey), charged), request)
        })

      return ChargePipeline.of({
        charge,
        resume: (claimed, taken) => {
          const askedAtMs = taken?.askedAtMs ?? clock.currentTimeMillisUnsafe()
          const resumed = Tracing.traced("ChargePipeline.resume", underItsRun(claimed.request, proceedAlone(claimed, askedAtMs, nothingBegun)), Tracing.ofCharge(claimed.request), said)
          return taken === undefined ? resumed : leases.hold(claimed)(taken.turn(resumed))
        },
        releaseDue: Effect.fnUntraced(function*(limit) {
          const due = yield* ledger.releaseDue(limit)
          yield* Effect.forEach(due, ({ attempt, chargeKey }) => room.release(chargeKey, attempt), { concurrency: 64, discard: true })
          return due.length
        }),
        releaseUnpaid: (chargeKey) => Effect.flatMap(untilStoreAnswers(settings, ledger.find(chargeKey)), room.releaseEnded)
      })
    })
  )
}
