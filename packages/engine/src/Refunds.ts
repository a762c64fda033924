/**
 * The steps of one refund: claim (which stores it), call, settle. The order and what follows each failure is
 * `docs/protocol.md`. A refund touches no cap: what was paid in a period stays paid out of its room.
 */
import {
  AlreadyRefunded, type ChargeError, ChargePause, type ChargeKey, type ClaimedRefund, FaultPoint, Refunded, RefundError, type RefundErrorReason, RefundConflict,
  RefundFailed, RefundGateway, RefundInProgress, type RefundKey, RefundLeaseLost, RefundLedger, type LedgerError, type RefundOutcome, RefundPending,
  RefundRefused, type RefundRequest, refundStateOf, RefundTooLarge, ChargeNotPaid
} from "@purser/core"
import { Clock, type Config, Context, Duration, Effect, Layer, Metric, Option, Result } from "effect"
import { EngineMetrics } from "./EngineMetrics.ts"
import { isSpentKey } from "./internal/backoff.ts"
import { type RefundEvidence, refundOrderOf, refundUntilKnown } from "./internal/refundSteps.ts"
import { patiently } from "./internal/gatewaySteps.ts"
import { PipelineOptions } from "./PipelineOptions.ts"

/** Everything that a refund can fail with. */
export type RefundFailure = RefundError | LedgerError | ChargeError

/** What one sweep of refunds did. */
export interface RefundSweepReport {
  readonly taken: number
  readonly settled: number
  readonly unsettled: number
}

/** Makes refunds, or goes on with claimed ones. Every method needs nothing. */
export class Refunds extends Context.Service<Refunds, {
  /** Takes a refund from claim to outcome; stored, it waits while charging is paused. The same refund again gets the recorded outcome. */
  readonly refund: (request: RefundRequest) => Effect.Effect<RefundOutcome, RefundFailure>
  /** Takes up refunds that nobody holds any more, and looks at those that settle later, batch by batch. */
  readonly sweepOnce: Effect.Effect<RefundSweepReport, LedgerError>
  /** Reads a refund's object anew, since it is said to have moved on; `undefined` when there is none to read. */
  readonly recheck: (refundKey: RefundKey) => Effect.Effect<RefundOutcome | undefined, RefundFailure>
}>()("@purser/engine/Refunds") {
  /** Refunds over whatever book and processor the app provides. */
  static readonly layer: Layer.Layer<Refunds, Config.ConfigError, RefundLedger | RefundGateway> = Layer.effect(
    Refunds,
    Effect.gen(function*() {
      const ledger = yield* RefundLedger
      const gateway = yield* RefundGateway
      const fault = yield* FaultPoint
      const given = yield* Effect.serviceOption(PipelineOptions)
      const settings = Option.isSome(given) ? given.value : yield* PipelineOptions.fromConfig

      // The stores of an app bring the switch along. Where there is none nothing can be paused.
      const shared = yield* Effect.serviceOption(ChargePause)
      const whenOpen = Option.isSome(shared) ? shared.value.whenOpen : Effect.void

      /** Waits while charging is paused; the refund is stored, and stays in our hands for as long as this process lives. */
      const waitWithLease = (claimed: ClaimedRefund) =>
        Effect.raceFirst(whenOpen, ledger.extend(claimed.lease).pipe(
          Effect.catch((error) => Effect.as(Effect.logDebug(`the refund's lease is not renewed: ${error.message}`), true)),
          Effect.delay(Duration.millis(Math.max(50, claimed.leaseLeftMs / 3))),
          Effect.repeat({ while: (held) => held }),
          Effect.andThen(Effect.never)
        ))

      /**
       * Renews the lease before a call. A process may stand still between the question and the answer: an answer that took
       * longer than a lease lasts says nothing about now, and is asked for again.
       */
      const renew = Effect.fnUntraced(function*(claimed: ClaimedRefund): Effect.fn.Return<void, RefundFailure> {
        for (;;) {
          const askedAtMs = yield* Clock.currentTimeMillis
          if (!(yield* ledger.extend(claimed.lease))) return yield* failed(claimed.chargeKey, new RefundLeaseLost({ operation: "call" }))
          if ((yield* Clock.currentTimeMillis) - askedAtMs < Math.max(1000, claimed.leaseLeftMs / 2)) return
        }
      })

      const failed = (chargeKey: ChargeKey, reason: RefundErrorReason) => new RefundError({ reason, chargeKey })

      const outcomeOf = (claimed: ClaimedRefund, evidence: RefundEvidence): RefundOutcome => {
        const common = { refundKey: claimed.lease.refundKey, chargeKey: claimed.chargeKey, amountMinor: claimed.amountMinor, alreadySettled: false }
        if (evidence._tag === "NothingLeft") return new AlreadyRefunded({ ...common, detail: evidence.detail })
        if (evidence._tag === "Refused") return new RefundRefused({ ...common, code: evidence.code, detail: evidence.detail })
        const { detail, id, status } = evidence.refund
        const withObject = { ...common, processorRefundId: id }
        switch (status) {
          case "succeeded":
            return new Refunded(withObject)
          case "pending":
            return new RefundPending({ ...withObject, detail: detail ?? "the processor carries it out later" })
          case "requires_action":
            return new RefundPending({ ...withObject, detail: "the customer has to act" })
          case "failed":
            return new RefundFailed({ ...withObject, detail: detail ?? "the refund came back" })
          case "canceled":
            return new RefundFailed({ ...withObject, detail: "the refund was canceled at the processor" })
        }
      }

      /** Records a fact; the store being away just now, with the money moved, is worth some patience. */
      const settle = Effect.fnUntraced(function*(claimed: ClaimedRefund, outcome: RefundOutcome): Effect.fn.Return<RefundOutcome, RefundFailure> {
        const answer = yield* ledger.settle({ lease: claimed.lease, outcome, pollAfterMs: settings.pollMs }).pipe(
          Effect.retry({ while: (error) => error.isRetryable, schedule: settings.retry })
        )
        yield* fault("refund-after-settle", claimed.chargeKey)
        if (answer._tag === "LeaseLost") return yield* failed(claimed.chargeKey, new RefundLeaseLost({ operation: "settle" }))
        if (answer._tag === "Settled") yield* Metric.update(EngineMetrics.refunds.of(refundStateOf[answer.outcome._tag]), 1)
        return answer.outcome
      })

      const proceed = (claimed: ClaimedRefund): Effect.Effect<RefundOutcome, RefundFailure> =>
        Effect.gen(function*() {
          yield* fault("refund-after-claim", claimed.chargeKey)
          // A process that stood still must not send what another has taken over and, a day later, nothing but this stops.
          const keepLease = Effect.gen(function*() {
            yield* waitWithLease(claimed)
            yield* fault("refund-before-call", claimed.chargeKey)
            yield* renew(claimed)
          })
          yield* waitWithLease(claimed)
          const evidence = yield* refundUntilKnown(gateway, settings, claimed, {
            beforeCall: keepLease,
            afterCall: fault("refund-after-call", claimed.chargeKey)
          })
          return yield* settle(claimed, outcomeOf(claimed, evidence))
        }).pipe(
          Effect.tapError((error) => Effect.ignore(ledger.handBack(claimed.lease, waitAfter(error), error.message))),
          Effect.onInterrupt(() => Effect.ignore(ledger.handBack(claimed.lease, 0, "the worker was stopped"))),
          Effect.annotateLogs({ chargeKey: claimed.chargeKey, refundKey: claimed.lease.refundKey })
        )

      /** A spent key gives no other answer for a day: there is no hurry to ask again. */
      const waitAfter = (error: RefundFailure): number =>
        error._tag === "ChargeError" && isSpentKey(error) ? settings.pollMs : settings.handBackMs

      const refund = Effect.fn("Refunds.refund")(function*(request: RefundRequest): Effect.fn.Return<RefundOutcome, RefundFailure> {
        const { chargeKey } = request
        const answer = yield* ledger.claim(request, settings.worker)
        switch (answer._tag) {
          case "Claimed":
            return yield* proceed(answer.refund)
          case "AlreadySettled":
            return answer.outcome
          case "InProgress":
            return yield* failed(chargeKey, new RefundInProgress({ leaseLeftMs: answer.leaseLeftMs }))
          case "NotPaid":
            return yield* failed(chargeKey, new ChargeNotPaid({ state: answer.state }))
          case "Conflict":
            return yield* failed(chargeKey, new RefundConflict({ refundId: request.refundId, expectedMinor: answer.expectedMinor, actualMinor: answer.actualMinor }))
          case "TooLarge": {
            const { elsewhereMinor, leftMinor, receivedMinor, requestedMinor } = answer
            return yield* failed(chargeKey, new RefundTooLarge({ elsewhereMinor, leftMinor, receivedMinor, requestedMinor }))
          }
        }
      })

      const batch = 256
      const sweepOnce = Effect.gen(function*() {
        // What is taken over would only wait in our hands.
        yield* whenOpen
        let taken = 0
        let settled = 0
        for (;;) {
          const claimed = yield* ledger.takeExpired(`${settings.worker}/sweeper`, batch)
          const results = yield* Effect.forEach(claimed, (one) =>
            Effect.result(proceed(one)).pipe(Effect.tap((result) =>
              Result.isFailure(result) ? Effect.logWarning(`refund ${one.lease.refundKey} stays open: ${result.failure.message}`) : Effect.void)),
            { concurrency: 16 })
          taken += claimed.length
          settled += results.filter(Result.isSuccess).length
          if (claimed.length < batch) return { taken, settled, unsettled: taken - settled }
        }
      }).pipe(Effect.withSpan("Refunds.sweepOnce"))

      const recheck = Effect.fn("Refunds.recheck")(function*(refundKey: RefundKey): Effect.fn.Return<RefundOutcome | undefined, RefundFailure> {
        const record = yield* ledger.find(refundKey)
        if (record === undefined || record.processorRefundId === null) return undefined
        const seen = { ...record, lease: { refundKey, worker: settings.worker, epoch: 0 }, paymentIntentId: "", chargeId: null }
        const claimed: ClaimedRefund = { ...seen, state: "pending", leaseLeftMs: 0, resumed: true }
        const object = yield* patiently(settings, gateway.retrieve(refundOrderOf(claimed), record.processorRefundId))
        return yield* settle(claimed, outcomeOf(claimed, { _tag: "Object", refund: object }))
      })

      return Refunds.of({ refund, sweepOnce, recheck })
    })
  )
}
