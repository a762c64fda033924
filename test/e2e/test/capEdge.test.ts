/** Many at once at the edge of the cap, through the whole pipeline of two workers: exactly what fits is paid, by the books. */
import { assert, describe, it } from "@effect/vitest"
import { type ChargeRequest, SpendCap } from "@purser/core"
import { ChargePipeline, PipelineOptions, retryPolicy } from "@purser/engine"
import * as TestDatabase from "@purser/postgres/TestDatabase"
import { StripeSim } from "@purser/stripe-sim"
import { chargeFor } from "@purser/testkit"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { openCap, world } from "../src/World.ts"

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

    it.live("F1: 16 rows of 10.00 against an expected total of 100.00, set off together: exactly 11 are paid, each time", () =>
      Effect.gen(function*() {
        for (const period of ["2026-01", "2026-02", "2026-03", "2026-04", "2026-05", "2026-06"]) {
          const requests = Array.from({ length: 16 }, (_, i) => chargeFor(`f1-${i}`, period))
          yield* openCap(requests[0]!, 10_000n)
          const outcomes = yield* together(requests)
          const books = yield* booksOf(period)
          assert.deepStrictEqual([books.length, books.reduce((sum, entry) => sum + entry.amountMinor, 0)], [11, 11_000])
          assert.strictEqual(outcomes.filter(({ _tag }) => _tag === "Rejected").length, 5)
        }
      }).pipe(Effect.provide(world(database))), 60_000)
  })
}
