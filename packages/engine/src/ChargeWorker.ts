/**
 * A worker: serves charge requests from the transport through the pipeline, and sweeps beside it. It holds no state;
 * a killed one costs a lease.
 */
import { type ChargeGateway, type ChargeHandler, ChargeServer, ConflictSink, type Ledger, Principal, type SpendCap, type TransportError } from "@purser/core"
import { Config, Context, Effect, Layer } from "effect"
import { ChargePipeline } from "./ChargePipeline.ts"
import { underItsRun } from "./internal/underItsRun.ts"
import { Sweeper } from "./Sweeper.ts"

/** Requests that say other terms than the ledger holds are kept for a person, where somebody keeps them. */
const noting = (handler: ChargeHandler, keep: ConflictSink): ChargeHandler =>
  keep === undefined ? handler : (request) =>
    Effect.tapError(handler(request), ({ reason }) =>
      reason._tag !== "ChargeConflict"
        ? Effect.void
        : Effect.flatMap(Principal, (principal) => keep({ chargeKey: request.chargeKey, ...reason.actual, principal })))

/** A worker of the app's transport, ledger, cap and gateway. */
export class ChargeWorker extends Context.Service<ChargeWorker, {
  /** Serves until interrupted, then finishes what it has taken. Fails when the transport cannot serve. */
  readonly run: Effect.Effect<never, TransportError>
}>()("@purser/engine/ChargeWorker") {
  /** The worker as a service, to be run by the app; `PURSER_SWEEP=false` leaves sweeping to others. */
  static readonly layerNoDeps: Layer.Layer<ChargeWorker, Config.ConfigError, ChargeServer | ChargePipeline | Sweeper> = Layer.effect(
    ChargeWorker,
    Effect.gen(function*() {
      const server = yield* ChargeServer
      const pipeline = yield* ChargePipeline
      const sweeper = yield* Sweeper
      const sweeps = yield* Config.Boolean("PURSER_SWEEP").pipe(Config.withDefault(true))
      const charge = noting(pipeline.charge, yield* ConflictSink)
      const serve = server.serve((request) => underItsRun(request, charge(request)))
      return ChargeWorker.of({ run: sweeps ? Effect.raceFirst(serve, sweeper.run) : serve })
    })
  )

  private static readonly layerWhole = ChargeWorker.layerNoDeps.pipe(Layer.provide(Sweeper.layerNoDeps), Layer.provide(ChargePipeline.layer))

  /** A program that is a worker: serves until it is interrupted, and ends with the failure of what stops it, such as an address that is taken. */
  static readonly launch: Effect.Effect<never, Config.ConfigError | TransportError, ChargeServer | Ledger | SpendCap | ChargeGateway> = Effect.provide(
    Effect.flatMap(ChargeWorker, ({ run }) => run),
    ChargeWorker.layerWhole
  )

  /** A worker beside other things of a program, for as long as the layer lives. What stops it is logged as fatal, and the program goes on without it. */
  static readonly layer: Layer.Layer<never, Config.ConfigError, ChargeServer | Ledger | SpendCap | ChargeGateway> = Layer.effectDiscard(
    Effect.flatMap(ChargeWorker, ({ run }) =>
      run.pipe(
        Effect.tapCause((cause) => Effect.logFatal("the worker stopped", cause)),
        Effect.forkScoped
      ))
  ).pipe(Layer.provide(ChargeWorker.layerWhole))
}
