/**
 * The real engine on a real database against the simulator over real HTTP, with a crash at any place of the protocol
 * and clocks that a test moves: the database's and the simulator's together, by hours or days.
 */
import { FaultPoint, type FaultHook, type FaultPlace, type Ledger, type SpendCap, type ChargeGateway, SpendCap as Cap, type ChargeRequest } from "@purser/core"
import { ChargePipeline, PipelineOptions, type PipelineSettings, Sweeper, retryPolicy } from "@purser/engine"
import { type Database, DatabaseClock, PgLedger, PgSpendCap } from "@purser/postgres"
import type * as TestDatabase from "@purser/postgres/TestDatabase"
import { StripeClient, type StripeConfigError, StripeGateway } from "@purser/stripe"
import { StripeSim } from "@purser/stripe-sim"
import type { Duration} from "effect";
import { Context, Deferred, Effect, Layer, Redacted } from "effect"
import type { SqlClient } from "effect/sql"

/** Makes a worker die, or stand still, at a place. A dead worker leaves everything as it is; it hands nothing back. */
export class Crash extends Context.Service<Crash, {
  /** The next charge that passes the place dies there. */
  readonly at: (place: FaultPlace) => Effect.Effect<void>
  /** The next charge that passes the place waits; answers what lets it go on, once it has arrived. */
  readonly holdAt: (place: FaultPlace) => Effect.Effect<{ readonly arrived: Effect.Effect<void>; readonly go: Effect.Effect<void> }>
}>()("@purser/test-e2e/Crash") {
  static readonly layer: Layer.Layer<Crash> = Layer.effectContext(Effect.sync(() => {
    const plans = new Map<FaultPlace, Effect.Effect<void>>()
    const hook: FaultHook = (place) =>
      Effect.suspend(() => {
        const plan = plans.get(place)
        plans.delete(place)
        return plan ?? Effect.void
      })
    return Context.make(Crash, {
      at: (place) => Effect.sync(() => void plans.set(place, Effect.die(new Error(`crash at ${place}`)))),
      holdAt: (place) =>
        Effect.gen(function*() {
          const arrived = yield* Deferred.make<void>()
          const go = yield* Deferred.make<void>()
          plans.set(place, Effect.andThen(Deferred.succeed(arrived, undefined), Deferred.await(go)))
          return { arrived: Deferred.await(arrived), go: Effect.asVoid(Deferred.succeed(go, undefined)) }
        })
    }).pipe(Context.add(FaultPoint, hook))
  }))
}

/** Everything that a test of the protocol can reach. */
export type WorldServices =
  | ChargePipeline | Sweeper | Ledger | SpendCap | ChargeGateway | StripeSim | Crash | Database | SqlClient.SqlClient

/** A gateway that still lacks its client. */
export type GatewayLayer = Layer.Layer<ChargeGateway, StripeConfigError, StripeClient>

const onSimulator = (gateway: GatewayLayer) => Layer.unwrap(Effect.map(StripeSim, (sim) =>
  gateway.pipe(Layer.provide(StripeClient.layer({ key: Redacted.make("sk_test_world"), url: sim.url, timeout: "2 seconds" })))))

const impatient = (settings: Partial<PipelineSettings> = {}) =>
  PipelineOptions.layer({ worker: "world", retry: retryPolicy({ attemptsMax: 4, backoffMs: 1, backoffMaxMs: 5 }), handBackMs: 0, ...settings })

/** The steps of a charge alone, for a ledger and a cap that are given: what a test needs that kills nobody. */
export const pipelineOn = (gateway: GatewayLayer) =>
  ChargePipeline.layer.pipe(Layer.provide(onSimulator(gateway)), Layer.provide(impatient()), Layer.orDie)

/** A world on one of the test databases; PaymentIntents unless another gateway is given. */
export const world = (
  database: (typeof TestDatabase.layers)[number][1],
  settings: Partial<PipelineSettings> = {},
  gateway: GatewayLayer = StripeGateway.layerPaymentIntentsWith()
) =>
  Sweeper.layerNoDeps.pipe(
    Layer.provideMerge(ChargePipeline.layer),
    Layer.provideMerge(Layer.mergeAll(PgLedger.layer, PgSpendCap.layer, onSimulator(gateway))),
    Layer.provideMerge(Layer.mergeAll(database, StripeSim.layer(), Crash.layer)),
    Layer.provide(impatient(settings))
  )

/** Moves every clock: leases run out, keys are pruned. */
export const advance = Effect.fnUntraced(function*(duration: Duration.Input) {
  yield* DatabaseClock.advance(duration)
  yield* (yield* StripeSim).advanceClock(duration)
})

/** Opens a cap that fits any test. */
export const openCap = (request: ChargeRequest, expectedMinor = 1_000_000n) =>
  Effect.flatMap(Cap, (cap) =>
    cap.open({ namespace: request.namespace, billingPeriod: request.billingPeriod, currency: request.currency, expectedMinor, headroomPercent: 110 }))

/** Payments by the simulator's books. */
export const payments = (request: ChargeRequest) =>
  Effect.map(Effect.flatMap(StripeSim, (sim) => sim.books), (books) =>
    books.filter((entry) => entry.customer === request.customerId && entry.billingPeriod === request.billingPeriod && entry.item === (request.item ?? ""))
      .reduce((sum, entry) => sum + entry.payments, 0))
