/**
 * Takes up charges that nobody holds any more: a worker died, lost its way to Stripe, or a payment settles later. Any
 * process may run one, any number of them at once; the ledger gives each row to one of them.
 */
import { type ChargeGateway, ChargePause, Ledger, type LedgerError, type PipelineError, type SpendCap, Tracing } from "@purser/core"
import { Clock, Config, Context, Duration, Effect, Layer, Metric, Option, Result, Semaphore } from "effect"
import { ChargePipeline } from "./ChargePipeline.ts"
import { EngineMetrics } from "./EngineMetrics.ts"
import { boundedInt } from "./internal/boundedInt.ts"
import { underItsRun } from "./internal/underItsRun.ts"
import { PipelineOptions } from "./PipelineOptions.ts"
import { Refunds, type RefundSweepReport } from "./Refunds.ts"

/** What one sweep did. `unsettled` charges were tried and are still open; `released` gave their room under the cap back. */
export interface SweepReport {
  readonly taken: number
  readonly settled: number
  readonly unsettled: number
  readonly released: number
  /** What the same sweep did about refunds, where the app has any. */
  readonly refunds?: RefundSweepReport
}

const options = Config.all({
  interval: Config.Duration("PURSER_SWEEP_INTERVAL").pipe(Config.withDefault(Duration.seconds(5))),
  batch: boundedInt("PURSER_SWEEP_BATCH", { minimum: 1, maximum: 10_000, default: 256 }),
  concurrency: boundedInt("PURSER_SWEEP_CONCURRENCY", { minimum: 1, maximum: 10_000, default: 64 })
})

/** Sweeps on demand, or for ever. */
export class Sweeper extends Context.Service<Sweeper, {
  /** Takes up all that is due now, batch by batch, until a batch comes back empty. */
  readonly sweepOnce: Effect.Effect<SweepReport, PipelineError>
  /** Sweeps, rests, and sweeps again; a failure is logged and the next sweep tries again. */
  readonly run: Effect.Effect<never>
}>()("@purser/engine/Sweeper") {
  /** A sweeper over the pipeline that the app provides, and over its refunds where it provides them. */
  static readonly layerNoDeps: Layer.Layer<Sweeper, Config.ConfigError, Ledger | ChargePipeline> = Layer.effect(
    Sweeper,
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const pipeline = yield* ChargePipeline
      const { batch, concurrency, interval } = yield* options
      const given = yield* Effect.serviceOption(PipelineOptions)
      const worker = `${(Option.isSome(given) ? given.value : yield* PipelineOptions.fromConfig).worker}/sweeper`

      const takeBatch: Effect.Effect<{ readonly taken: number; readonly settled: number }, LedgerError> = Effect.gen(function*() {
        const askedAtMs = yield* Clock.currentTimeMillis
        const taken = yield* ledger.takeExpired(worker, batch)
        const gate = yield* Semaphore.make(concurrency)
        const results = yield* Effect.forEach(taken, (charge) =>
          Effect.result(pipeline.resume(charge, { askedAtMs, turn: (work) => gate.withPermit(work) })).pipe(
            Effect.tap((result) =>
              Metric.update(EngineMetrics.swept.of(Result.isFailure(result) ? "unsettled" : "settled"), 1).pipe(Effect.andThen(
                Result.isFailure(result)
                  ? underItsRun(charge.request, Effect.annotateLogs(Effect.logWarning(`charge ${charge.lease.chargeKey} stays open: ${result.failure.message}`), { chargeKey: charge.lease.chargeKey }))
                  : Effect.void
              ))
            )
          ), { concurrency: "unbounded" })
        return { taken: taken.length, settled: results.filter(Result.isSuccess).length }
      })

      const releaseAll = Effect.gen(function*() {
        let released = 0
        for (;;) {
          const count = yield* pipeline.releaseDue(batch)
          released += count
          if (count < batch) return released
        }
      })

      const shared = yield* Effect.serviceOption(ChargePause)
      // What is taken over would only wait in our hands.
      const whenOpen = Option.isSome(shared) ? shared.value.whenOpen : Effect.void

      const refunds = yield* Effect.serviceOption(Refunds)

      const sweepOnce = Tracing.traced("Sweeper.sweepOnce", Effect.gen(function*() {
        let taken = 0
        let settled = 0
        for (;;) {
          const done = yield* takeBatch
          taken += done.taken
          settled += done.settled
          if (done.taken < batch) break
        }
        const report: SweepReport = { taken, settled, unsettled: taken - settled, released: yield* releaseAll }
        return Option.isNone(refunds) ? report : { ...report, refunds: yield* refunds.value.sweepOnce }
      }))

      return Sweeper.of({
        sweepOnce,
        run: Effect.andThen(whenOpen, sweepOnce).pipe(
          Effect.tap(({ settled, taken }) => taken === 0 ? Effect.void : Effect.logInfo(`swept ${taken} charges, ${settled} settled`)),
          Effect.tap(({ refunds }) =>
            refunds === undefined || refunds.taken === 0 ? Effect.void : Effect.logInfo(`swept ${refunds.taken} refunds, ${refunds.settled} settled`)),
          Effect.catch((error) => Effect.logWarning(`a sweep failed, the next one tries again: ${error.message}`)),
          Effect.catchDefect((defect) => Effect.logError("a sweep failed inside; the next one tries again", defect)),
          Effect.andThen(Effect.sleep(interval)),
          Effect.forever
        )
      })
    })
  )

  /** A sweeper with its own pipeline. */
  static readonly layer: Layer.Layer<Sweeper, Config.ConfigError, Ledger | SpendCap | ChargeGateway> = Sweeper.layerNoDeps.pipe(
    Layer.provide(ChargePipeline.layer)
  )
}
