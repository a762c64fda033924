/** The real refunds on top of a world: the same database, the same simulator, the same places to die at. */
import type { ChargeRequest } from "@purser/core"
import { RefundLedger, RefundRequest } from "@purser/core"
import { ChargePipeline, PipelineOptions, Refunds, retryPolicy } from "@purser/engine"
import { PgRefundLedger } from "@purser/postgres"
import type * as TestDatabase from "@purser/postgres/TestDatabase"
import { StripeClient, StripeRefunds } from "@purser/stripe"
import { StripeSim } from "@purser/stripe-sim"
import { assert } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { type GatewayLayer, openCap, world } from "./World.ts"

const onSimulator = Layer.unwrap(Effect.map(StripeSim, (sim) =>
  StripeRefunds.layerWith.pipe(Layer.provide(StripeClient.layer({ key: Redacted.make("sk_test_world"), url: sim.url, timeout: "2 seconds" })))))

const optionsOf = (worker: string) =>
  PipelineOptions.layer({ worker, retry: retryPolicy({ attemptsMax: 4, backoffMs: 1, backoffMaxMs: 5 }), handBackMs: 0 })

/** A world with refunds on one of the test databases. */
export const refundWorld = (database: (typeof TestDatabase.layers)[number][1], gateway?: GatewayLayer) =>
  Refunds.layer.pipe(
    Layer.provide(optionsOf("refunds")),
    Layer.provideMerge(Layer.mergeAll(PgRefundLedger.layer, onSimulator)),
    Layer.provideMerge(world(database, {}, gateway))
  )

/** Another process of the same kind, by its own name. */
export const elsewhere = <A, E, R>(worker: string, effect: Effect.Effect<A, E, R | Refunds>) =>
  effect.pipe(Effect.provide(Refunds.layer.pipe(Layer.provide(optionsOf(worker))), { local: true }))

/** A charge that is paid. */
export const paidCharge = Effect.fnUntraced(function*(request: ChargeRequest) {
  yield* openCap(request)
  const outcome = yield* (yield* ChargePipeline).charge(request)
  assert.strictEqual(outcome._tag, "Succeeded")
})

/** A request for a refund. */
export const refundFor = (request: ChargeRequest, amountMinor: number | null = null, refundId = "1", again = false) =>
  new RefundRequest({
    chargeKey: request.chargeKey, refundId, amountMinor: amountMinor as RefundRequest["amountMinor"], reason: null, actor: "test", note: "test", again
  })

/** Asks for a refund here. */
export const refund = (wish: RefundRequest) => Effect.flatMap(Refunds, (refunds) => refunds.refund(wish))

/** Takes up what nobody holds. */
export const sweepRefunds = Effect.flatMap(Refunds, (refunds) => refunds.sweepOnce)

/** What went back, by the simulator's books. */
export const refundsOf = (request: ChargeRequest) =>
  Effect.map(Effect.flatMap(StripeSim, (sim) => sim.books), (books) => {
    const entry = books.find(({ billingPeriod, customer }) => customer === request.customerId && billingPeriod === request.billingPeriod)
    return { refunds: entry?.refunds ?? 0, refundedMinor: entry?.refundedMinor ?? 0 }
  })

/** How the refund stands in the book. */
export const stateOf = (wish: RefundRequest) =>
  Effect.map(Effect.flatMap(RefundLedger, (book) => book.find(wish.refundKey)), (record) => record?.state)
