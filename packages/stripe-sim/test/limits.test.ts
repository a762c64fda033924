import { sandboxLimits, StripeSim } from "@purser/stripe-sim"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { arrived, call, intentForm, raw, refusal, sdk, type Sim } from "./support.ts"

const intents = "/v1/payment_intents"

const statuses = (sim: Sim, times: number, path = intents) =>
  Effect.forEach(Array.from({ length: times }, (_, n) => n), (n) =>
    Effect.map(raw(sim, path, path === intents ? { body: intentForm(`&metadata[n]=${n}`) } : {}), ({ status }) => status))

describe("rate limits", () => {
  it.effect("are off unless asked for", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      assert.deepStrictEqual(new Set(yield* statuses(sim, 60)), new Set([200]))
    }))

  it.effect("let a second's worth through at once, then refuse with the reason, and run nothing", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make({ rateLimits: { globalPerSecond: 0.001, endpointPerSecond: 100 } })
      assert.deepStrictEqual(yield* statuses(sim, 2), [200, 429])
      const refused = yield* raw(sim, intents, { body: intentForm(), key: "k" })
      assert.strictEqual(refused.headers["stripe-rate-limited-reason"], "global-rate")
      assert.deepInclude(refused.json.error, { code: "rate_limit" })
      yield* sim.advanceClock("1000 seconds")
      // The refusal was not stored under the key.
      assert.strictEqual((yield* raw(sim, intents, { body: intentForm(), key: "k" })).status, 200)
      const error = yield* refusal(() => sdk(sim).customers.retrieve("cus_1"))
      assert.strictEqual(error.type, "StripeRateLimitError")
    }))

  it.effect("count each endpoint by itself: confirm is not create", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make({ rateLimits: { endpointPerSecond: 0.001 } })
      const made = yield* raw(sim, intents, { body: intentForm() })
      const again = yield* raw(sim, intents, { body: intentForm() })
      assert.strictEqual(again.headers["stripe-rate-limited-reason"], "endpoint-rate")
      assert.strictEqual((yield* raw(sim, `${intents}/${made.json.id}/confirm`, { body: "off_session=true" })).status, 200)
      assert.strictEqual((yield* raw(sim, `${intents}/${made.json.id}`)).status, 200)
      assert.strictEqual((yield* raw(sim, `${intents}/${made.json.id}`)).status, 429)
    }))

  it.effect("a sandbox takes 25 a second, and as many again a second later", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make({ rateLimits: "sandbox" })
      assert.strictEqual(sandboxLimits.globalPerSecond, 25)
      assert.deepStrictEqual(new Set(yield* statuses(sim, 25)), new Set([200]))
      yield* sim.advanceClock("1 second")
      assert.deepStrictEqual(new Set(yield* statuses(sim, 25)), new Set([200]))
    }))

  it.effect("count what runs at once, in all and per endpoint", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make({ rateLimits: { endpointConcurrent: 1, globalConcurrent: 2 } })
      yield* sim.faults.add({
        match: { path: intents, times: "always" },
        action: { kind: "delay", at: "during", delayMs: 3_600_000 }
      })
      const one = yield* Effect.forkChild(raw(sim, intents, { body: intentForm(), key: "one" }))
      yield* arrived(sim, (entry) => entry.idempotencyKey === "one")
      const same = yield* raw(sim, intents, { body: intentForm() })
      assert.strictEqual(same.headers["stripe-rate-limited-reason"], "endpoint-concurrency")
      yield* sim.faults.add({ match: { path: "/v1/charges" }, action: { kind: "delay", at: "after", delayMs: 3_600_000 } })
      const other = yield* Effect.forkChild(raw(sim, "/v1/charges", { body: "amount=100&currency=usd&customer=cus_1", key: "two" }))
      yield* arrived(sim, (entry) => entry.idempotencyKey === "two")
      const third = yield* raw(sim, "/v1/customers/cus_1")
      assert.strictEqual(third.headers["stripe-rate-limited-reason"], "global-concurrency")
      yield* sim.faults.release
      assert.deepStrictEqual([(yield* Fiber.join(one)).status, (yield* Fiber.join(other)).status], [200, 200])
      assert.strictEqual((yield* raw(sim, "/v1/customers/cus_1")).status, 200)
    }))

  it.effect("count the changes of one PaymentIntent, and can be set and lifted while it runs", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const { id } = yield* call(() => sdk(sim).paymentIntents.create({ amount: 100, currency: "usd" }))
      yield* sim.setRateLimits({ intentChangesPerHour: 2 })
      const change = raw(sim, `${intents}/${id}`, { body: "description=x" })
      yield* change
      yield* change
      assert.strictEqual((yield* change).headers["stripe-rate-limited-reason"], "resource-specific")
      yield* sim.advanceClock("1 hour")
      assert.strictEqual((yield* change).status, 200)
      yield* raw(sim, "/_sim/limits", { body: JSON.stringify({ intentChangesPerHour: 0 }) })
      yield* change
      yield* raw(sim, "/_sim/limits", { method: "DELETE" })
      assert.strictEqual((yield* change).status, 200)
    }))

  it.effect("are set by a preset's name, whose rates are exact on a clock that stands still", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.makeInProcess()
      const ask = sim.send({ method: "GET", path: "/v1/customers/cus_1", headers: { authorization: "Bearer sk_test_sim" } })
      const refused = Effect.map(
        Effect.replicateEffect(ask, 130),
        (answers) => answers.filter(({ status }) => status === 429).length
      )
      assert.strictEqual(yield* refused, 0)
      yield* sim.setRateLimits("sandbox")
      assert.strictEqual(yield* refused, 105)
      yield* sim.setRateLimits("off")
      assert.strictEqual(yield* refused, 0)
    }))

  it.effect("are set by a preset's name over HTTP, and a limit of an unknown name is refused", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const set = (limits: unknown) => Effect.map(raw(sim, "/_sim/limits", { body: JSON.stringify(limits) }), ({ status }) => status)
      const ask = Effect.map(raw(sim, "/v1/customers/cus_1"), ({ status }) => status)
      assert.strictEqual(yield* set("sandbox"), 200)
      // The bucket fills in real time meanwhile, so how many pass before the first refusal is not known.
      yield* Effect.repeat(ask, { until: (status) => status === 429 })
      assert.strictEqual(yield* set("off"), 200)
      assert.deepStrictEqual(new Set(yield* statuses(sim, 30, "/v1/customers/cus_1")), new Set([200]))
      assert.strictEqual(yield* set("live"), 200)
      assert.strictEqual(yield* set("fast"), 400)
      assert.strictEqual(yield* set({ globalPerSec: 1 }), 400)
    }))
})
