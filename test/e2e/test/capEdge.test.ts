/** Many at once at the edge of the cap, through the whole pipeline of two workers: exactly what fits is paid, by the books. */
import { assert, describe, it } from "@effect/vitest"
import { ChargeGateway, type ChargeRequest, Ledger, SpendCap } from "@purser/core"
import { memoryBooks } from "@purser/core/testing"
import { ChargePipeline, PipelineOptions, retryCharge, retryPolicy } from "@purser/engine"
import { PgLedger, PgSpendCap } from "@purser/postgres"
import * as TestDatabase from "@purser/postgres/TestDatabase"
import { StripeSim } from "@purser/stripe-sim"
import { chargeFor } from "@purser/testkit"
import { Context, Deferred, Effect, Fiber, Layer } from "effect"
import { caseFile } from "../src/Desk.ts"
import { openCap, world } from "../src/World.ts"

/** The rows of the case's file. */
const rows = new TextDecoder().decode(caseFile("F1-cap.csv")).trimEnd().split("\n").slice(1).map((line) => line.split(","))

const secondWorker = ChargePipeline.layer.pipe(Layer.provide(PipelineOptions.layer({ worker: "second", retry: retryPolicy({ attemptsMax: 6, backoffMs: 1, backoffMaxMs: 5 }) })))

/** All requests set off together, every other one at a second worker. */
const together = Effect.fnUntraced(function*(requests: ReadonlyArray<ChargeRequest>) {
  const start = yield* Deferred.make<void>()
  const first = yield* ChargePipeline
  return yield* Effect.gen(function*() {
    const second = yield* ChargePipeline
    const waiting = yield* Effect.forkChild(Effect.forEach(
      requests,
      (request, index) => Effect.andThen(Deferred.await(start), (index % 2 === 0 ? first : second).charge(request)),
      { concurrency: "unbounded" }
    ))
    yield* Deferred.succeed(start, undefined)
    return yield* Fiber.join(waiting)
  }).pipe(Effect.provide(secondWorker, { local: true }))
})

const booksOf = (billingPeriod: string) =>
  Effect.map(Effect.flatMap(StripeSim, (sim) => sim.books), (books) => books.filter((entry) => entry.billingPeriod === billingPeriod && entry.payments > 0))

for (const [name, database] of TestDatabase.layers) {
  describe(`the edge of the cap on ${name}`, () => {
    it.live("a retry of what others have had declined meanwhile asks nobody, and leaves no room taken", () =>
      Effect.gen(function*() {
        const request = chargeFor("late", "2026-06", { paymentMethod: "pm_card_visa_chargeDeclinedInsufficientFunds" })
        yield* openCap(request)
        yield* (yield* ChargePipeline).charge(request)
        const ledger = yield* Ledger
        const seen = (yield* ledger.find(request.chargeKey))!
        const act = { actor: "a person", reason: "again" }
        const room = Effect.flatMap(SpendCap, (cap) => Effect.map(cap.report(request.billingPeriod), (all) => all.map((one) => one.reservedMinor)))
        assert.strictEqual((yield* retryCharge(seen, act))?._tag, "Declined")
        assert.deepStrictEqual(yield* room, [0n])
        assert.strictEqual(yield* retryCharge(seen, act), undefined)
        assert.deepStrictEqual([(yield* ledger.find(request.chargeKey))?.attempt, yield* room], [2, [0n]])
      }).pipe(Effect.provide(world(database))), 120_000)

    it.live("of 50 concurrent requests exactly those that fit succeed", () =>
      Effect.gen(function*() {
        const requests = Array.from({ length: 50 }, (_, i) => chargeFor(`edge-${i}`, "2026-07", { amountMinor: i % 3 === 0 ? 1700 : 1000 }))
        yield* openCap(requests[0]!, 20_000n)
        const capMinor = 22_000
        const outcomes = yield* together(requests)
        const books = yield* booksOf("2026-07")
        const paidMinor = books.reduce((sum, entry) => sum + entry.amountMinor, 0)
        assert.isTrue(books.every((entry) => entry.payments === 1))
        assert.isAtMost(paidMinor, capMinor)
        const succeeded = requests.filter((_, i) => outcomes[i]!._tag === "Succeeded")
        const rejected = requests.filter((_, i) => outcomes[i]!._tag === "Rejected")
        assert.strictEqual(succeeded.length + rejected.length, 50)
        assert.deepStrictEqual(books.map(({ customer }) => customer).toSorted(), succeeded.map(({ customerId }) => customerId).toSorted())
        // Nobody was refused who would have fitted.
        for (const { amountMinor } of rejected) assert.isAbove(paidMinor + amountMinor, capMinor)
        const [report] = yield* (yield* SpendCap).report()
        assert.deepStrictEqual([report?.reservedMinor, report?.capMinor], [BigInt(paidMinor), BigInt(capMinor)])
      }).pipe(Effect.provide(world(database))), 60_000)

    it.live("F1: the file's 16 rows of 10.00 against an expected total of 100.00, each at a worker of its own, set off together: exactly 11 are paid, each time", () =>
      Effect.gen(function*() {
        const gateway = yield* ChargeGateway
        const workers = yield* Effect.forEach(rows, (_, at) =>
          // Stores of its own too: calls of one process may share a statement.
          Effect.map(Layer.build(Layer.fresh(ChargePipeline.layer.pipe(
            Layer.provide(Layer.mergeAll(PgLedger.layer, PgSpendCap.layer, Layer.succeed(ChargeGateway, gateway))),
            Layer.provide(PipelineOptions.layer({ worker: `w${at}`, retry: retryPolicy({ attemptsMax: 6, backoffMs: 1, backoffMaxMs: 5 }) }))
          ))), Context.get(ChargePipeline)))
        for (let run = 1; run <= (name === "postgres" ? 100 : 10); run++) {
          const requests = rows.map(([customer, period, amount, currency, stripeCustomerId, paymentMethod, item]) =>
            chargeFor(customer!, period!, { namespace: `f1-${run}`, amountMinor: Number(amount!.replace(".", "")), currency: currency!.toLowerCase(), stripeCustomerId: stripeCustomerId!, paymentMethod: paymentMethod!, item: item! }))
          yield* openCap(requests[0]!, 10_000n)
          const start = yield* Deferred.make<void>()
          const waiting = yield* Effect.forkChild(Effect.forEach(requests, (request, at) => Effect.andThen(Deferred.await(start), workers[at]!.charge(request)), { concurrency: "unbounded" }))
          yield* Deferred.succeed(start, undefined)
          const outcomes = yield* Fiber.join(waiting)
          const paid = requests.map(({ chargeKey }) => memoryBooks.get(gateway)!().get(chargeKey)?.payments ?? 0)
          assert.deepStrictEqual(paid, outcomes.map(({ _tag }) => _tag === "Succeeded" ? 1 : 0), `run ${run}`)
          assert.deepStrictEqual([paid.filter((payments) => payments === 1).length, outcomes.filter(({ _tag }) => _tag === "Rejected").length], [11, 5], `run ${run}`)
        }
      }).pipe(Effect.provide(Layer.merge(Layer.provideMerge(PgSpendCap.layer, database), ChargeGateway.layerMemory))), 120_000)
  })
}
