import { assert, describe, it } from "@effect/vitest"
import { ChargeGateway } from "@purser/core"
import { type Fault, StripeSim } from "@purser/stripe-sim"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { confirm, created, failing, onSim, orderFor } from "./support.ts"

const order = orderFor()
const onConfirm: NonNullable<Fault["match"]> = { path: "/v1/payment_intents/*/confirm" }
const posts = Effect.map(
  Effect.flatMap(StripeSim, (sim) => sim.requests),
  (entries) => entries.filter(({ path }) => path.endsWith("/confirm")).length
)
const paid = Effect.flatMap(StripeSim, (sim) => sim.payments("cust_1", "2026-07"))

/** What one confirm with a fault answers, whether money moved then, and what the next one with the same key says. */
const table: ReadonlyArray<readonly [name: string, action: Fault["action"], reason: string, outcome: string, moved: 0 | 1, next: string]> = [
  ["reset before", { kind: "reset", at: "before" }, "GatewayUnavailable", "unknown", 0, "succeeded"],
  ["reset after", { kind: "reset", at: "after" }, "GatewayUnavailable", "unknown", 1, "succeeded"],
  ["body cut off", { kind: "truncate" }, "GatewayUnavailable", "unknown", 1, "succeeded"],
  ["500, nothing done, not stored", { kind: "serverError", effect: "none", stored: false }, "GatewayUnavailable", "unknown", 0, "succeeded"],
  ["500, done, not stored", { kind: "serverError", effect: "done", stored: false }, "GatewayUnavailable", "unknown", 1, "succeeded"],
  ["500, nothing done, stored", { kind: "serverError", effect: "none", stored: true }, "GatewayUnavailable", "unknown", 0, "replayed"],
  ["500, done, stored", { kind: "serverError", effect: "done", stored: true }, "GatewayUnavailable", "unknown", 1, "replayed"],
  ["429", { kind: "rateLimited", reason: "endpoint-rate" }, "RateLimited", "not_charged", 0, "succeeded"],
  ["lock timeout", { kind: "lockTimeout" }, "RateLimited", "not_charged", 0, "succeeded"],
  ["409", { kind: "keyInUse" }, "KeyInUse", "unknown", 0, "succeeded"],
  ["HTML 502 before", { kind: "badGateway", effect: "none" }, "GatewayUnavailable", "unknown", 0, "succeeded"],
  ["HTML 502 after", { kind: "badGateway", effect: "done" }, "GatewayUnavailable", "unknown", 1, "succeeded"],
  ["JSON without error, 403", { kind: "foreignJson", status: 403, effect: "none" }, "UnexpectedAnswer", "unknown", 0, "succeeded"],
  ["JSON without error, 200, done", { kind: "foreignJson", status: 200, effect: "done" }, "UnexpectedAnswer", "unknown", 1, "succeeded"]
]

describe("one confirm under a fault", () => {
  for (const [name, action, reason, outcome, moved, next] of table) {
    it.effect(`${name}: ${reason}, ${outcome}, one request; then ${next}, and one payment in the end`, () =>
      Effect.gen(function*() {
        const sim = yield* StripeSim
        const { id } = yield* created(order)
        yield* sim.faults.add({ match: onConfirm, action })
        const error = yield* failing(confirm(order, id))
        assert.strictEqual(error.reason._tag, reason)
        assert.strictEqual(error.outcome, outcome)
        assert.strictEqual(yield* posts, 1)
        assert.strictEqual(yield* paid, moved)
        if (next === "replayed") {
          const stored = yield* failing(confirm(order, id))
          assert.deepInclude(stored.reason, { _tag: "GatewayUnavailable", replayed: true, status: 500 })
          assert.strictEqual((yield* confirm(order, id, "pm_card_visa", 1, ":r2")).status, "succeeded")
        } else {
          assert.strictEqual((yield* confirm(order, id)).status, "succeeded")
        }
        assert.strictEqual(yield* paid, 1)
      }).pipe(Effect.provide(onSim())))
  }

  it.effect("a 500 that Stripe rolls forward later is found by retrieve", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim
      const { retrieve } = yield* ChargeGateway
      const { id } = yield* created(order)
      yield* sim.faults.add({ match: onConfirm, action: { kind: "serverError", effect: "later", stored: true } })
      yield* failing(confirm(order, id))
      assert.strictEqual((yield* retrieve(order, id)).status, "unconfirmed")
      yield* sim.rollForward
      assert.strictEqual((yield* retrieve(order, id)).status, "succeeded")
    }).pipe(Effect.provide(onSim())))

  it.effect("429 tells which limit it was", () =>
    Effect.gen(function*() {
      yield* (yield* StripeSim).faults.add({ action: { kind: "rateLimited", reason: "global-concurrency" } })
      const error = yield* failing(created(order))
      assert.deepInclude(error.reason, { _tag: "RateLimited", limitReason: "global-concurrency" })
    }).pipe(Effect.provide(onSim())))

  it.effect("a stalled body ends with GatewayTimeout at the deadline, and the money did move", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim
      const { id } = yield* created(order)
      yield* sim.faults.add({ match: onConfirm, action: { kind: "stall" } })
      const fiber = yield* Effect.forkChild(failing(confirm(order, id)))
      while ((yield* paid) === 0) yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      yield* TestClock.adjust("30 seconds")
      const error = yield* Fiber.join(fiber)
      assert.deepInclude(error.reason, { _tag: "GatewayTimeout", operation: "confirm", timeoutMs: 30_000 })
      assert.strictEqual(error.outcome, "unknown")
      assert.strictEqual(yield* posts, 1)
      assert.strictEqual((yield* confirm(order, id)).status, "succeeded")
      assert.strictEqual(yield* paid, 1)
    }).pipe(Effect.provide(onSim())))

  it.effect("an answer lost on create leaves an object that find adopts", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim
      const { find } = yield* ChargeGateway
      yield* sim.faults.add({ match: { path: "/v1/payment_intents", method: "POST" }, action: { kind: "reset", at: "after" } })
      yield* failing(created(order))
      const orphan = yield* find(order, yield* sim.nowMs)
      assert.deepInclude(orphan, { status: "unconfirmed", chargeKey: order.chargeKey })
      assert.strictEqual((yield* created(order)).id, orphan?.id)
    }).pipe(Effect.provide(onSim())))

  it.effect("two confirms at once with keys ignored: one payment", () =>
    Effect.gen(function*() {
      const { id } = yield* created(order)
      const results = yield* Effect.forEach([1, 2, 3, 4], (attempt) => Effect.result(confirm(order, id, "pm_card_visa", attempt)), {
        concurrency: 4
      })
      assert.isTrue(results.some((result) => result._tag === "Success" && result.success.status === "succeeded"))
      assert.strictEqual(yield* paid, 1)
    }).pipe(Effect.provide(onSim({}, { idempotency: false }))))
})
