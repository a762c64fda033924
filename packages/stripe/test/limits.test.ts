/** The limiter: its speed on a clock that stands still, its order on real calls. */
import { assert, describe, it } from "@effect/vitest"
import { ChargeGateway } from "@purser/core"
import { StripeSim } from "@purser/stripe-sim"
import { StripeClient } from "@purser/stripe"
import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { type Limiter, makeLimiter } from "../src/internal/limiter.ts"
import { onSim, orderFor } from "./support.ts"

const turn = (endpoint: string, account = "") => ({ account, endpoint })
/** When each of so many calls had its turn, in milliseconds. */
const timesOf = Effect.fnUntraced(function*(limiter: Limiter, count: number, endpoints: ReadonlyArray<string>, account = "") {
  const fiber = yield* Effect.forkChild(Effect.all(
    Array.from({ length: count }, (_, i) => limiter.inTurn(turn(endpoints[i % endpoints.length]!, account), Clock.currentTimeMillis)),
    { concurrency: "unbounded" }
  ))
  yield* TestClock.adjust("2 minutes")
  return yield* Fiber.join(fiber)
})
const busiestSecond = (times: ReadonlyArray<number>) =>
  Math.max(...times.map((start) => times.filter((time) => time >= start && time < start + 1000).length))

describe("the limiter", () => {
  it.effect("keeps to the rate of an endpoint, over any second, and uses it up", () =>
    Effect.gen(function*() {
      const limiter = yield* makeLimiter({ allPerSecond: 100, endpointPerSecond: 25, concurrency: 1000 })
      const times = yield* timesOf(limiter, 500, ["create"])
      const seconds = (Math.max(...times) - Math.min(...times)) / 1000
      assert.isAtMost(busiestSecond(times), 27)
      assert.isAtLeast(500 / seconds, 25 * 0.98)
    }))

  it.effect("keeps to the rate in all, however many endpoints there are", () =>
    Effect.gen(function*() {
      const limiter = yield* makeLimiter({ allPerSecond: 100, endpointPerSecond: 25, concurrency: 10_000 })
      const times = yield* timesOf(limiter, 3000, ["a", "b", "c", "d", "e", "f"])
      assert.isAtMost(busiestSecond(times), 110)
      assert.isAtLeast(3000 / ((Math.max(...times) - Math.min(...times)) / 1000), 98)
    }))

  it.effect("gives each account its own", () =>
    Effect.gen(function*() {
      const limiter = yield* makeLimiter({ allPerSecond: 25, endpointPerSecond: null, concurrency: 1000 })
      const fibers = yield* Effect.forEach(["", "acct_1", "acct_2"], (account) => Effect.forkChild(timesOf(limiter, 50, ["a"], account)))
      yield* TestClock.adjust("3 seconds")
      for (const fiber of fibers) assert.isAtMost(Math.max(...(yield* Fiber.join(fiber))), 2100)
    }))

  it.effect("slows down by the reason of a refusal, once for those of one moment, and recovers", () =>
    Effect.gen(function*() {
      const limiter = yield* makeLimiter({ allPerSecond: null, endpointPerSecond: 20, concurrency: 1000 })
      yield* TestClock.adjust("10 seconds")
      for (let i = 0; i < 20; i++) yield* limiter.slowDown(turn("a"), "endpoint-rate")
      const slow = yield* timesOf(limiter, 18, ["a"])
      assert.isAtLeast(Math.max(...slow) - Math.min(...slow), 900)
      const other = yield* timesOf(limiter, 20, ["b"])
      assert.isAtMost(Math.max(...other) - Math.min(...other), 1000)
      yield* timesOf(limiter, 1, ["a"])
      const recovered = yield* timesOf(limiter, 100, ["a"])
      assert.isAtMost(Math.max(...recovered) - Math.min(...recovered), 5000)
    }))

  it.effect("without a limit is not slowed by what is not about rates, and learns a limit from refusals that are", () =>
    Effect.gen(function*() {
      const limiter = yield* makeLimiter({ allPerSecond: null, endpointPerSecond: null, concurrency: 1000 })
      yield* TestClock.adjust("10 seconds")
      yield* limiter.slowDown(turn("a"), "resource-specific")
      const free = yield* timesOf(limiter, 40, ["a"])
      assert.strictEqual(Math.max(...free), Math.min(...free))
      yield* timesOf(limiter, 40, ["a"]).pipe(Effect.forkChild, Effect.flatMap(Fiber.join))
      const burst = Effect.all(Array.from({ length: 40 }, () => limiter.inTurn(turn("a"), Clock.currentTimeMillis)), { concurrency: "unbounded" })
      yield* burst
      yield* limiter.slowDown(turn("a"), "global-rate")
      const learnt = yield* timesOf(limiter, 72, ["b"])
      assert.isAtLeast(Math.max(...learnt) - Math.min(...learnt), 1500)
    }))

  it.effect("lets so many calls of an account be under way, and no more", () =>
    Effect.gen(function*() {
      const limiter = yield* makeLimiter({ allPerSecond: null, endpointPerSecond: null, concurrency: 3 })
      let running = 0
      let most = 0
      const call = limiter.inTurn(turn("a"), Effect.gen(function*() {
        most = Math.max(most, ++running)
        yield* Effect.sleep("1 second")
        running -= 1
      }))
      const fiber = yield* Effect.forkChild(Effect.all(Array.from({ length: 12 }, () => call), { concurrency: "unbounded" }))
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(fiber)
      assert.strictEqual(most, 3)
    }))

  it.effect("a call that is interrupted while it waits takes nobody's turn for ever", () =>
    Effect.gen(function*() {
      const limiter = yield* makeLimiter({ allPerSecond: null, endpointPerSecond: null, concurrency: 1 })
      const first = yield* Effect.forkChild(limiter.alone("cus_1", Effect.never))
      const second = yield* Effect.forkChild(limiter.alone("cus_1", Effect.succeed("second")))
      const third = yield* Effect.forkChild(limiter.alone("cus_1", Effect.succeed("third")))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(second)
      yield* Fiber.interrupt(first)
      assert.strictEqual(yield* Fiber.join(third), "third")
    }))
})

describe("a customer", () => {
  it.live("has one call under way at a time, and holds nobody else up", () =>
    Effect.gen(function*() {
      const gateway = yield* ChargeGateway
      const sim = yield* StripeSim
      yield* sim.faults.add({ match: { path: "/v1/payment_intents", customer: "cus_1" }, action: { kind: "delay", at: "after", delayMs: 600_000 } })
      const [a, b, c] = [orderFor({ item: "a" }), orderFor({ item: "b" }), orderFor({ item: "c", stripeCustomerId: "cus_2" })]
      const first = yield* Effect.forkChild(gateway.create(a, ""))
      const arrived = (count: number): Effect.Effect<void> =>
        Effect.flatMap(sim.requests, (all) => all.length >= count ? Effect.void : Effect.andThen(Effect.sleep(5), arrived(count)))
      yield* arrived(1)
      const second = yield* Effect.forkChild(gateway.create(b, ""))
      // Another customer's whole charge passes meanwhile.
      const payment = yield* gateway.create(c, "")
      yield* gateway.confirm(c, { id: payment.id, attempt: 1, paymentMethod: "pm_card_visa", keySuffix: "" })
      assert.strictEqual((yield* sim.requests).length, 3)
      yield* sim.faults.release
      yield* Fiber.join(first)
      yield* Fiber.join(second)
      assert.strictEqual((yield* sim.requests).length, 4)
    }).pipe(Effect.provide(onSim())))

  it.live("of one name in two accounts is two customers", () =>
    Effect.gen(function*() {
      const client = yield* StripeClient
      const sim = yield* StripeSim
      yield* sim.faults.add({ match: { path: "/v1/customers/*" }, action: { kind: "delay", at: "after", delayMs: 600_000 } })
      const ask = (account: string) => client.call("look", (stripe) => stripe.customers.retrieve("cus_1"), { customer: "cus_1", account })
      const first = yield* Effect.forkChild(ask("acct_1"))
      const arrived: Effect.Effect<void> = Effect.flatMap(sim.requests, (all) => all.length > 0 ? Effect.void : Effect.andThen(Effect.sleep(5), arrived))
      yield* arrived
      assert.strictEqual((yield* ask("acct_2")).status, 200)
      yield* sim.faults.release
      yield* Fiber.join(first)
    }).pipe(Effect.provide(onSim())))
})
