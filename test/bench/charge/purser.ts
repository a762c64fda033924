/**
 * Purser's own way: ledger, cap and pipeline at their defaults, over a gateway whose `confirm` is the one call, at a processor
 * that honours its keys for ever.
 */
import {
  ChargeGateway, type GatewayOrder, type GatewayPayment, readRequest, SpendCap, ChargeError, GatewayUnavailable
} from "@purser/core"
import { ChargePipeline } from "@purser/engine"
import { Database, Migrations, PgLedger, PgSpendCap } from "@purser/postgres"
import { Effect, Layer, ManagedRuntime, Redacted, Result } from "effect"
import { SqlClient } from "effect/sql"
import { setFlagsFromString } from "node:v8"
import { countColumns, notCounted, tellCounts } from "../support/statements.ts"
import { type Counts, type Job, makePost, type Program, type Ready, type Setting } from "./jobs.ts"

// As the command has it for itself.
setFlagsFromString("--no-allocation-site-pretenuring")

const standing = (order: GatewayOrder, id: string, chargeId: string | null): GatewayPayment => ({
  id,
  status: chargeId === null ? "unconfirmed" : "succeeded",
  amountMinor: order.request.amountMinor,
  amountReceivedMinor: chargeId === null ? 0 : order.request.amountMinor,
  currency: order.request.currency,
  stripeCustomerId: order.request.stripeCustomerId,
  chargeKey: order.chargeKey,
  generation: order.generation,
  chargeId,
  decline: null
})

/** The gateway of one call: `create` makes nothing, `confirm` is the call. */
export const layerGateway = (setting: Setting) =>
  Layer.effect(ChargeGateway, Effect.map(
    Effect.acquireRelease(Effect.sync(() => makePost(setting)), ({ close }) => Effect.promise(close)),
    ({ post }) => {
      const idOf = (order: GatewayOrder) => `one:${order.chargeKey}`
      const unsent = (order: GatewayOrder) => Effect.succeed(standing(order, idOf(order), null))
      return ChargeGateway.of({
        name: "one-call",
        unsent: (order) => standing(order, idOf(order), null),
        create: unsent,
        find: () => Effect.succeed(undefined),
        retrieve: unsent,
        cancel: unsent,
        defaultPaymentMethod: () => Effect.succeed("pm_card_visa"),
        confirm: (order) =>
          Effect.map(
            Effect.tryPromise({
              try: () => post(order.chargeKey, { customerId: order.request.customerId, amountMinor: order.request.amountMinor }),
              catch: (error) => new ChargeError({ reason: new GatewayUnavailable({ operation: "charge", status: null, detail: String(error), replayed: false }), chargeKey: order.chargeKey, requestId: null })
            }),
            (chargeId) => standing(order, idOf(order), chargeId)
          )
      })
    }
  ))

/** Of a database with one connection, whose counts are told on it. */
const countsOf = Effect.fnUntraced(function*(sql: SqlClient.SqlClient): Effect.fn.Return<Counts, unknown> {
  yield* sql.unsafe(tellCounts)
  const [counted] = yield* sql.unsafe<Record<"transactions" | "fsyncs" | "wal", unknown>>(`select ${notCounted} ${countColumns}`)
  return { transactions: Number(counted!.transactions), fsyncs: Number(counted!.fsyncs), walBytes: Number(counted!.wal) }
})

const requestOf = ({ amountMinor, customerId }: Job) =>
  Result.getOrThrow(readRequest({
    namespace: "zmq-billing", customerId, billingPeriod: "2026-07", amountMinor, currency: "usd", stripeCustomerId: "cus_123", paymentMethod: "pm_card_visa"
  }))

/** On whatever database. */
export const openPurser = async (setting: Setting, database: Layer.Layer<Layer.Success<ReturnType<typeof Database.layerUrl>>, unknown>): Promise<Required<Ready>> => {
  const runtime = ManagedRuntime.make(
    ChargePipeline.layer.pipe(
      Layer.provideMerge(Layer.mergeAll(PgLedger.layer, PgSpendCap.layer, layerGateway(setting))),
      Layer.provideMerge(Layer.provideMerge(Migrations.layer, database))
    )
  )
  const { charge } = await runtime.runPromise(Effect.tap(ChargePipeline, () =>
    Effect.flatMap(SpendCap, (cap) => cap.open({
      namespace: "zmq-billing", billingPeriod: requestOf({ customerId: "c", amountMinor: 1 }).billingPeriod,
      currency: requestOf({ customerId: "c", amountMinor: 1 }).currency, expectedMinor: 1_000_000_000_000n, headroomPercent: 110
    }))))
  return {
    charge: (jobs) => {
      const one = (job: Job) =>
        Effect.flatMap(charge(requestOf(job)), (outcome) => outcome._tag === "Succeeded" ? Effect.void : Effect.die(new Error(outcome._tag)))
      // As many loops as may be under way, as the others have.
      let at = 0
      const loop = Effect.whileLoop({ while: () => at < jobs.length, body: () => one(jobs[at++]!), step: () => undefined })
      const { apartMs = 0, inFlight } = setting
      const loops = Array.from({ length: Math.min(inFlight, jobs.length) }, (_, index) => apartMs > 0 ? Effect.delay(loop, index * apartMs) : loop)
      return runtime.runPromise(loops.length === 1 ? loops[0]! : Effect.all(loops, { concurrency: "unbounded", discard: true }))
    },
    counts: () => runtime.runPromise(Effect.flatMap(SqlClient.SqlClient, countsOf)),
    close: () => runtime.dispose()
  }
}

export const program: Program = {
  name: "purser",
  open: async (setting) => {
    // Its database is counted by the bench.
    const { charge, close } = await openPurser(setting, Database.layerUrl(Redacted.make(setting.databaseUrl)))
    return { charge, close }
  }
}
