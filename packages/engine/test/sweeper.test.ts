/** One sweep and the loop around it, over a ledger and a pipeline that answer as they are told. */
import { assert, describe, it } from "@effect/vitest"
import { ChargePause, ChargeRequest, type ClaimedCharge, LeaseLost, Ledger, LedgerError, LedgerUnavailable, Succeeded } from "@purser/core"
import { ConfigProvider, Context, Effect, Fiber, Layer, Logger, Metric, Schema } from "effect"
import { TestClock } from "effect/testing"
import { ChargePipeline } from "../src/ChargePipeline.ts"
import { EngineMetrics } from "../src/EngineMetrics.ts"
import { PipelineOptions } from "../src/PipelineOptions.ts"
import { Refunds, type RefundSweepReport } from "../src/Refunds.ts"
import { Sweeper } from "../src/Sweeper.ts"

const chargeOf = (customerId: string): ClaimedCharge => {
  const request = Schema.decodeUnknownSync(ChargeRequest)({
    namespace: "zmq-billing", customerId, billingPeriod: "2026-07", amountMinor: 1999, currency: "usd", stripeCustomerId: "cus_1"
  })
  return {
    lease: { chargeKey: request.chargeKey, worker: "w", epoch: 2 }, leaseLeftMs: 1000, request, state: "claimed", resumed: true, generation: 1, attempt: 1, paymentIntentId: null,
    paymentMethod: "pm_1", chosenMethod: null, declinedChargeId: null, sinceFirstClaimMs: 0, firstClaimedAtMs: 0
  }
}
const ledgerError = (reason: LedgerError["reason"]) => new LedgerError({ reason, chargeKey: null })
const away = ledgerError(new LedgerUnavailable({ operation: "take expired", detail: "stopped" }))
const counted = (metric: Metric.Metric<never, { readonly count: number | bigint }>) => Effect.map(Metric.value(metric), ({ count }) => Number(count))

interface Plan {
  /** Customers that each call of `takeExpired` finds; those named `bad…` are left open by the pipeline. */
  readonly batches: Array<ReadonlyArray<string> | LedgerError | "defect">
  /** Rooms that each call of `releaseDue` gives back. */
  readonly rooms?: Array<number>
  readonly refunds?: RefundSweepReport
  readonly pause?: ChargePause["Service"]
  readonly config?: Record<string, string>
  /** Without it the worker's name is that of the configuration. */
  readonly worker?: string
}

/** A sweeper, what it asked for, and what it said. */
const sweeper = (plan: Plan) => {
  const asked: Array<string> = []
  const lines: Array<string> = []
  let working = 0
  const ledger = Layer.effect(Ledger, Effect.map(Ledger, (memory) => Ledger.of({
    ...memory,
    takeExpired: (worker, limit) => Effect.suspend(() => {
      asked.push(`take ${worker} ${limit}`)
      const batch = plan.batches.shift() ?? []
      if (batch === "defect") return Effect.die(new Error("Bug: test"))
      return batch instanceof LedgerError ? Effect.fail(batch) : Effect.succeed(batch.map(chargeOf))
    })
  }))).pipe(Layer.provide(Ledger.layerMemory))
  const pipeline = Layer.succeed(ChargePipeline, ChargePipeline.of({
    charge: () => Effect.die("not asked"),
    resume: ({ lease, request }, taken) => taken!.turn(Effect.gen(function*() {
      asked.push(`resume ${request.customerId} beside ${working++}`)
      yield* Effect.ensuring(Effect.sleep(10), Effect.sync(() => void (working -= 1)))
      return request.customerId.startsWith("bad")
        ? yield* ledgerError(new LeaseLost({ operation: "settle" }))
        : new Succeeded({ chargeKey: lease.chargeKey, alreadySettled: false, paymentIntentId: "pi_1", chargeId: null, amountReceivedMinor: 1999 })
    })),
    releaseDue: (limit) => Effect.sync(() => {
      asked.push(`release ${limit}`)
      return plan.rooms?.shift() ?? 0
    }),
    releaseUnpaid: () => Effect.die("not asked")
  }))
  const refunds = plan.refunds === undefined ? Layer.empty : Layer.succeed(Refunds, Refunds.of({
    refund: () => Effect.die("not asked"), recheck: () => Effect.die("not asked"), sweepOnce: Effect.sync(() => (asked.push("refunds"), plan.refunds!))
  }))
  const layer = Sweeper.layerNoDeps.pipe(
    Layer.provide(Layer.mergeAll(
      ledger, pipeline, refunds,
      plan.pause === undefined ? Layer.empty : Layer.succeed(ChargePause, plan.pause),
      plan.worker === undefined ? Layer.empty : PipelineOptions.layer({ worker: plan.worker })
    )),
    Layer.provideMerge(Layer.mergeAll(
      ConfigProvider.layer(ConfigProvider.fromUnknown(plan.config ?? {})),
      Logger.layer([Logger.make(({ logLevel, message }) => void lines.push(`${logLevel} ${Array.isArray(message) ? message.map((part) => part instanceof Error ? part.message : String(part)).join(" ") : String(message)}`))]),
      Layer.succeedContext(Context.make(Metric.MetricRegistry, new Map()))
    ))
  )
  return { asked, layer, lines }
}
const swept = (plan: Plan) => {
  const { asked, layer, lines } = sweeper(plan)
  return Effect.gen(function*() {
    const fiber = yield* Effect.forkChild((yield* Sweeper).sweepOnce, { startImmediately: true })
    yield* TestClock.adjust("1 second")
    const report = yield* Fiber.join(fiber)
    return { asked, lines, report, counts: [yield* counted(EngineMetrics.swept.of("settled")), yield* counted(EngineMetrics.swept.of("unsettled"))] }
  }).pipe(Effect.provide(layer))
}

describe("one sweep", () => {
  it.effect("takes what is due batch by batch until one is not full, counts what came of it, and gives back what room is due", () =>
    Effect.gen(function*() {
      const { asked, counts, lines, report } = yield* swept({
        worker: "w1", config: { PURSER_SWEEP_BATCH: "2", PURSER_SWEEP_CONCURRENCY: "1" }, batches: [["a", "bad b"], ["c", "d"], ["e"]], rooms: [2, 2, 1]
      })
      assert.deepStrictEqual(report, { taken: 5, settled: 4, unsettled: 1, released: 5 })
      assert.deepStrictEqual(asked, [
        "take w1/sweeper 2", "resume a beside 0", "resume bad b beside 0", "take w1/sweeper 2", "resume c beside 0", "resume d beside 0", "take w1/sweeper 2", "resume e beside 0",
        "release 2", "release 2", "release 2"
      ])
      assert.deepStrictEqual(counts, [4, 1])
      const lost = ledgerError(new LeaseLost({ operation: "settle" })).message
      assert.deepStrictEqual(lines, [`Warn charge ${chargeOf("bad b").lease.chargeKey} stays open: ${lost}`])
    }))

  it.effect("finds nothing to do, and names itself by the configuration where nobody else does", () =>
    Effect.gen(function*() {
      const { asked, counts, lines, report } = yield* swept({ config: { PURSER_WORKER: "by config" }, batches: [] })
      assert.deepStrictEqual([report, asked, counts, lines], [{ taken: 0, settled: 0, unsettled: 0, released: 0 }, ["take by config/sweeper 256", "release 256"], [0, 0], []])
    }))

  it.effect("works on as many at once as it is told, by default on 64", () =>
    Effect.gen(function*() {
      const names = Array.from({ length: 70 }, (_, index) => `c${index}`)
      const besides = (asked: ReadonlyArray<string>) => Math.max(...asked.flatMap((line) => line.startsWith("resume") ? [Number(line.split(" ").at(-1))] : []))
      assert.strictEqual(besides((yield* swept({ worker: "w", batches: [names] })).asked), 63)
      assert.strictEqual(besides((yield* swept({ worker: "w", batches: [names], config: { PURSER_SWEEP_CONCURRENCY: "3" } })).asked), 2)
    }))

  it.effect("sweeps refunds as well where there are any", () =>
    Effect.gen(function*() {
      const refunds = { taken: 3, settled: 2, unsettled: 1 }
      const { asked, report } = yield* swept({ worker: "w1", batches: [["a"]], refunds })
      assert.deepStrictEqual(report, { taken: 1, settled: 1, unsettled: 0, released: 0, refunds })
      assert.deepStrictEqual(asked, ["take w1/sweeper 256", "resume a beside 0", "release 256", "refunds"])
    }))

  it.effect("is told no numbers that are none", () =>
    Effect.gen(function*() {
      for (const [key, value] of [["PURSER_SWEEP_BATCH", "0"], ["PURSER_SWEEP_BATCH", "10001"], ["PURSER_SWEEP_CONCURRENCY", "0"], ["PURSER_SWEEP_CONCURRENCY", "10001"]] as const) {
        assert.strictEqual((yield* Effect.exit(swept({ worker: "w", batches: [], config: { [key]: value } })))._tag, "Failure", `${key}=${value}`)
      }
      for (const [key, value] of [["PURSER_SWEEP_BATCH", "10000"], ["PURSER_SWEEP_CONCURRENCY", "10000"]] as const) yield* swept({ worker: "w", batches: [], config: { [key]: value } })
    }))
})

describe("sweeping for ever", () => {
  /** Sweeps for so long, and answers when each sweep took a batch and what was said. */
  const run = (plan: Plan, during: Effect.Effect<void>) => {
    const { asked, layer, lines } = sweeper(plan)
    return Effect.gen(function*() {
      const fiber = yield* Effect.forkChild((yield* Sweeper).run, { startImmediately: true })
      yield* during
      assert.isUndefined(fiber.pollUnsafe())
      yield* Fiber.interrupt(fiber)
      return { lines, sweeps: asked.filter((line) => line.startsWith("take")).length }
    }).pipe(Effect.provide(layer))
  }

  it.effect("rests for five seconds, or as long as it is told, and says what it did if there was anything", () =>
    Effect.gen(function*() {
      const seconds = (count: number) => Effect.forEach(Array.from({ length: count }), () => TestClock.adjust("1 second"), { discard: true })
      const refunds = { taken: 3, settled: 2, unsettled: 1 }
      const first = yield* run({ worker: "w", batches: [["a", "b"], [], ["c"]], refunds }, seconds(14))
      assert.strictEqual(first.sweeps, 3)
      assert.deepStrictEqual(first.lines, [
        "Info swept 2 charges, 2 settled", "Info swept 3 refunds, 2 settled", "Info swept 3 refunds, 2 settled", "Info swept 1 charges, 1 settled", "Info swept 3 refunds, 2 settled"
      ])
      const second = yield* run({ worker: "w", batches: [], refunds: { taken: 0, settled: 0, unsettled: 0 }, config: { PURSER_SWEEP_INTERVAL: "2 seconds" } }, seconds(9))
      assert.deepStrictEqual(second, { sweeps: 5, lines: [] })
    }))

  it.effect("goes on after a sweep that failed or fell over, and says so", () =>
    Effect.gen(function*() {
      const { lines, sweeps } = yield* run({ worker: "w", batches: [away, "defect", ["a"]] }, Effect.forEach([1, 2, 3], () => TestClock.adjust("4 seconds"), { discard: true }))
      assert.strictEqual(sweeps, 3)
      assert.deepStrictEqual(lines, [
        `Warn a sweep failed, the next one tries again: ${away.message}`, "Error a sweep failed inside; the next one tries again Bug: test", "Info swept 1 charges, 1 settled"
      ])
    }))

  it.effect("takes nothing over while charging is paused", () =>
    Effect.gen(function*() {
      const pause = Context.get(yield* Layer.build(ChargePause.layerMemory), ChargePause)
      const act = { cause: "person", actor: "ops", reason: "an incident" } as const
      yield* pause.pause(act)
      let before = -1
      const plan: Plan = { worker: "w", batches: [], pause }
      const { asked, layer } = sweeper(plan)
      yield* Effect.gen(function*() {
        const fiber = yield* Effect.forkChild((yield* Sweeper).run, { startImmediately: true })
        yield* TestClock.adjust("1 minute")
        before = asked.length
        yield* pause.resume(act)
        yield* TestClock.adjust("1 second")
        yield* Fiber.interrupt(fiber)
      }).pipe(Effect.provide(layer))
      assert.deepStrictEqual([before, asked], [0, ["take w/sweeper 256", "release 256"]])
    }))
})
