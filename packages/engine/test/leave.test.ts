/** How long a charge that nobody can decide is left alone, and what that comes to in a week. */
import { assert, describe, it } from "@effect/vitest"
import { ChargeError, ChargeGateway, GatewayTimeout, Ledger, PermissionDenied, SpendCap } from "@purser/core"
import { ConfigProvider, Effect, Fiber, Layer, Logger } from "effect"
import { TestClock } from "effect/testing"
import { ChargePipeline } from "../src/ChargePipeline.ts"
import { handBackAfterMs } from "../src/internal/leave.ts"
import { Sweeper } from "../src/Sweeper.ts"
import { attached, chargeError, chargeKey, ran, request } from "./support/scripted.ts"

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

describe("a charge that is handed back", () => {
  const waits = (handBackMs: number, epoch: number, attempt = 1) =>
    [0, minuteMs, 2 * minuteMs, hourMs, 3 * hourMs + 20 * minuteMs, 4 * hourMs, 365 * dayMs].map((sinceFirstClaimMs) => handBackAfterMs(handBackMs, { attempt, lease: { chargeKey, worker: "w", epoch }, sinceFirstClaimMs }))
  const grown = [600_000, 600_000, 600_000]

  it("is left alone as the setting says ten times, then for a twentieth of its age, ten minutes at the most", () => {
    for (const epoch of [1, 10]) assert.deepStrictEqual(waits(5000, epoch), [5000, 5000, 5000, 5000, 5000, 5000, 5000])
    assert.deepStrictEqual(waits(5000, 11), [5000, 5000, 6000, 180_000, ...grown])
    assert.deepStrictEqual(waits(0, 11), [0, 3000, 6000, 180_000, ...grown])
  })

  it("is tried soon again when it is asked for once more, however old it is", () => {
    assert.deepStrictEqual(waits(5000, 20, 2), [5000, 5000, 5000, 5000, 5000, 5000, 5000])
    assert.deepStrictEqual(waits(5000, 21, 2), [5000, 5000, 6000, 180_000, ...grown])
  })

  it("is never left alone for less than the setting says, and for whole milliseconds", () => {
    assert.deepStrictEqual(new Set(waits(hourMs, 100)), new Set([hourMs]))
    assert.strictEqual(handBackAfterMs(0, { attempt: 1, lease: { chargeKey, worker: "w", epoch: 11 }, sinceFirstClaimMs: 100_000.7 }), 5000)
  })

  const unread = { gateway: { retrieve: () => Effect.fail(chargeError(new PermissionDenied({ detail: "not yours" }))) } }
  it.effect("tells the ledger by its own age", () => Effect.gen(function*() {
    for (const [epoch, sinceFirstClaimMs, afterMs] of [[1, dayMs, 7000], [11, 0, 7000], [11, hourMs, 180_000], [500, dayMs, 600_000]] as const) {
      const { asked } = yield* ran(unread, ({ resume }) => resume(attached({ lease: { chargeKey, worker: "w", epoch }, sinceFirstClaimMs })))
      assert.include(asked.at(-1), `hand back ${afterMs} `)
    }
  }))
})

/** Its confirm is not answered, and its object may not be read until somebody says so. */
const processor = (mayRead: () => boolean) =>
  Layer.effect(ChargeGateway, Effect.map(ChargeGateway, (memory) => {
    const failed = (reason: ChargeError["reason"], { chargeKey }: { readonly chargeKey: ChargeError["chargeKey"] }) => Effect.fail(new ChargeError({ reason, chargeKey, requestId: null }))
    return ChargeGateway.of({
      ...memory,
      confirm: (order, confirm) => mayRead() ? memory.confirm(order, confirm) : failed(new GatewayTimeout({ operation: "confirm", timeoutMs: 1 }), order),
      retrieve: (order, id) => mayRead() ? memory.retrieve(order, id) : failed(new PermissionDenied({ detail: "this key may not read" }), order)
    })
  })).pipe(Layer.provide(ChargeGateway.layerMemory))

const engine = (mayRead: () => boolean) =>
  Sweeper.layerNoDeps.pipe(
    Layer.provideMerge(ChargePipeline.layer),
    Layer.provideMerge(Layer.mergeAll(Ledger.layerMemory, SpendCap.layerMemory, processor(mayRead))),
    Layer.provideMerge(Layer.mergeAll(Logger.layer([]), ConfigProvider.layer(ConfigProvider.fromUnknown({}))))
  )

describe("a charge that nobody can decide, with the settings as they come", () => {
  it.effect("has some two thousand lines after a week, and is settled within ten minutes of its object being readable", () => {
    let mayRead = false
    return Effect.gen(function*() {
      yield* (yield* SpendCap).open({ ...request, expectedMinor: 1_000_000n, headroomPercent: 100 })
      const first = yield* Effect.forkChild(Effect.flip((yield* ChargePipeline).charge(request)))
      yield* TestClock.adjust("1 minute")
      assert.include((yield* Fiber.join(first)).message, "cannot be read")
      yield* Effect.forkChild((yield* Sweeper).run)
      const ledger = yield* Ledger
      const after = (ageMs: number) => Effect.gen(function*() {
        yield* TestClock.setTime(ageMs)
        return (yield* ledger.events(request.chargeKey)).length
      })
      // Claimed, attached and handed back, and from then on taken over and handed back.
      const lines = [yield* after(2 * minuteMs), yield* after(hourMs), yield* after(dayMs), yield* after(7 * dayMs)]
      const [twoMinutes, hour, day, week] = lines.map((count) => (count - 3) / 2) as [number, number, number, number]
      assert.isTrue(twoMinutes > 8 && twoMinutes < 15, `in two minutes: ${twoMinutes}`)
      assert.isTrue(hour > 60 && hour < 90, `in an hour: ${hour}`)
      assert.isTrue(day > 200 && day < 250, `in a day: ${day}`)
      assert.isTrue(week > 1000 && week < 1150, `in a week: ${week}`)
      mayRead = true
      yield* TestClock.adjust("10 minutes")
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual((yield* ledger.find(request.chargeKey))?.state, "succeeded")
    }).pipe(Effect.provide(engine(() => mayRead)))
  }, 60_000)
})
