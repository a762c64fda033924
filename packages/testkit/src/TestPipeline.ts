/**
 * A whole pipeline in memory: transport with planned faults, ledger, cap, processor with books, a worker that serves.
 * The edges are fakes, the middle is the real engine.
 */
import { type ChargeClient, type ChargeGateway, Ledger, SpendCap, Transport } from "@purser/core"
import { ChargePipeline, ChargeWorker, PipelineOptions, Sweeper, retryPolicy } from "@purser/engine"
import { Effect, Layer } from "effect"
import { FaultPlan } from "./FaultPlan.ts"
import { MockGateway } from "./MockGateway.ts"

/** A cap that opens by itself, wide enough for every test that is not about caps. */
const wideCap: Layer.Layer<SpendCap> = Layer.effect(
  SpendCap,
  Effect.map(SpendCap, (cap) =>
    SpendCap.of({
      ...cap,
      reserve: (input) =>
        cap.open({ ...input, expectedMinor: 10n ** 12n, headroomPercent: 110 }).pipe(
          Effect.catch(() => Effect.void),
          Effect.andThen(cap.reserve(input))
        )
    }))
).pipe(Layer.provide(SpendCap.layerMemory))

const stores = Layer.mergeAll(Ledger.layerMemory, MockGateway.layer)
const wire = Transport.layerMemory.pipe(Layer.provideMerge(FaultPlan.layer))
const quick = PipelineOptions.layer({ worker: "test", retry: retryPolicy({ attemptsMax: 6, backoffMs: 0, backoffMaxMs: 0 }), handBackMs: 0 })

const make = (cap: Layer.Layer<SpendCap>) => {
  const engine = Layer.mergeAll(Sweeper.layerNoDeps, Layer.empty).pipe(Layer.provideMerge(ChargePipeline.layer))
  return Layer.effectDiscard(Effect.flatMap(ChargeWorker, (worker) => Effect.forkScoped(worker.run))).pipe(
    Layer.provide(ChargeWorker.layerNoDeps),
    Layer.provideMerge(engine),
    Layer.provideMerge(Layer.mergeAll(wire, stores, cap)),
    Layer.provide(quick),
    Layer.orDie
  )
}

/** Layers of the pipeline under test. Provide one to each test; each holds its own state. */
export const TestPipeline: {
  /** With a cap that never stops a charge. */
  readonly layer: Layer.Layer<ChargeClient | FaultPlan | MockGateway | Ledger | SpendCap | ChargeGateway | ChargePipeline | Sweeper>
  /** With the plain memory cap: tests open it themselves. */
  readonly layerStrictCap: Layer.Layer<ChargeClient | FaultPlan | MockGateway | Ledger | SpendCap | ChargeGateway | ChargePipeline | Sweeper>
} = {
  layer: make(wideCap),
  layerStrictCap: make(SpendCap.layerMemory)
}
