import { type SimResponse, StripeSim, type StripeSimOptions, type StripeSimShape, type WebhookRequest } from "@purser/stripe-sim"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Random } from "effect"
import { TestClock } from "effect/testing"
import { Stripe } from "stripe"

const ask = (sim: StripeSimShape, path: string, body?: string, key?: string) =>
  sim.send({
    method: body === undefined ? "GET" : "POST",
    path,
    headers: {
      authorization: "Bearer sk_test_sim",
      ...(body === undefined ? {} : { "content-type": "application/x-www-form-urlencoded" }),
      ...(key === undefined ? {} : { "idempotency-key": key })
    },
    ...(body === undefined ? {} : { body })
  })

const charge = "amount=1999&currency=usd&customer=cus_1"

describe("a simulator in the program", () => {
  it.effect("answers without a socket, with the same keys and books", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.makeInProcess()
      const first = yield* ask(sim, "/v1/charges", charge, "k")
      const again = yield* ask(sim, "/v1/charges", charge, "k")
      assert.strictEqual(first.status, 200)
      assert.strictEqual(again.body, first.body)
      assert.strictEqual(again.headers["idempotent-replayed"], "true")
      assert.strictEqual((yield* ask(sim, "/v1/charges?limit=1")).status, 200)
      assert.strictEqual(yield* sim.payments("cus_1", ""), 1)
    }))

  it.effect("lives on the program's clock", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.makeInProcess()
      assert.strictEqual(yield* sim.nowMs, 0)
      yield* ask(sim, "/v1/charges", charge, "k")
      yield* TestClock.adjust("25 hours")
      const later: { created: number } = JSON.parse((yield* ask(sim, "/v1/charges", charge, "k")).body)
      assert.strictEqual(later.created, 25 * 3600)
      assert.strictEqual(yield* sim.payments("cus_1", ""), 2)
    }))

  it.effect("delays pass on that clock, or when they are released", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.makeInProcess()
      yield* sim.faults.add({ match: { times: "always" }, action: { kind: "delay", at: "after", delayMs: 60_000 } })
      const waiting = yield* Effect.forkChild(ask(sim, "/v1/charges", charge, "a"))
      yield* TestClock.adjust("59 seconds")
      assert.isUndefined(waiting.pollUnsafe())
      assert.strictEqual(yield* sim.payments("cus_1", ""), 1)
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(waiting)).status, 200)
      const other = yield* Effect.forkChild(ask(sim, "/v1/charges", charge, "b"))
      yield* TestClock.adjust("1 second")
      yield* sim.faults.release
      assert.strictEqual((yield* Fiber.join(other)).status, 200)
    }))

  it.effect("breaks connections as errors, and goes on when the caller gives up", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.makeInProcess()
      yield* sim.faults.add(
        { match: { nth: 1 }, action: { kind: "reset", at: "before" } },
        { match: { nth: 2 }, action: { kind: "reset", at: "after" } },
        { match: { nth: 3 }, action: { kind: "truncate" } },
        { match: { nth: 4 }, action: { kind: "stall" } },
        { match: { nth: 5 }, action: { kind: "badGateway", effect: "done" } },
        { match: { nth: 6 }, action: { kind: "delay", at: "during", delayMs: 60_000 } }
      )
      const paid = Effect.map(sim.books, (books) => books.reduce((sum, { payments }) => sum + payments, 0))
      const lost = (key: string) => Effect.flip(ask(sim, "/v1/charges", charge, key))
      assert.deepInclude(yield* lost("1"), { _tag: "ConnectionLost", reason: "reset" })
      assert.strictEqual(yield* paid, 0)
      assert.deepInclude(yield* lost("2"), { reason: "reset" })
      assert.deepInclude(yield* lost("3"), { reason: "truncated" })
      assert.strictEqual(yield* paid, 2)
      const silent = yield* Effect.forkChild(ask(sim, "/v1/charges", charge, "4"))
      yield* TestClock.adjust("1 hour")
      assert.isUndefined(silent.pollUnsafe())
      yield* Fiber.interrupt(silent)
      assert.strictEqual((yield* ask(sim, "/v1/charges", charge, "5")).status, 502)
      assert.strictEqual(yield* paid, 4)
      const slow = yield* Effect.forkChild(ask(sim, "/v1/charges", charge, "6"))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(slow)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* paid, 5)
    }))

  it.effect("limits to the request: 25 at once, then one each 40 milliseconds; 100 for a live account", () =>
    Effect.gen(function*() {
      const passed = (sim: StripeSimShape, path: string) =>
        Effect.map(
          Effect.all(Array.from({ length: 150 }, () => ask(sim, path))),
          (answers: ReadonlyArray<SimResponse>) => answers.filter(({ status }) => status === 200).length
        )
      const sandbox = yield* StripeSim.makeInProcess({ rateLimits: "sandbox" })
      assert.strictEqual(yield* passed(sandbox, "/v1/customers/cus_1"), 25)
      yield* TestClock.adjust("40 millis")
      assert.strictEqual(yield* passed(sandbox, "/v1/customers/cus_1"), 1)
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* passed(sandbox, "/v1/customers/cus_1"), 25)
      assert.strictEqual(yield* passed(sandbox, "/v1/charges"), 0)
      const live = yield* StripeSim.makeInProcess({ rateLimits: "live" })
      const each = yield* Effect.forEach(
        ["/v1/customers/cus_1", "/v1/charges", "/v1/refunds", "/v1/invoices", "/v1/disputes"],
        (path) => passed(live, path)
      )
      assert.deepStrictEqual(each, [25, 25, 25, 25, 0])
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* passed(live, "/v1/charges/search?query=currency%3A'usd'"), 20)
    }))

  it.effect("sends webhooks to a function of the program", () =>
    Effect.gen(function*() {
      const got: Array<WebhookRequest> = []
      const options: StripeSimOptions = {
        webhooks: [{ url: "https://billing.example/hook", secret: "whsec_1" }],
        receiveWebhook: (request) => Effect.sync(() => got.push(request) === 1 ? 500 : 200)
      }
      const sim = yield* StripeSim.makeInProcess(options)
      yield* ask(sim, "/v1/charges", charge)
      yield* sim.webhooks.settled
      yield* TestClock.adjust("2 minutes")
      // Nothing wakes up by itself: what is due happens when someone asks.
      yield* sim.advanceClock(0)
      yield* sim.webhooks.settled
      assert.strictEqual(got.length, 2)
      const [, second] = got
      const event = Stripe.webhooks.constructEvent(second!.body, second!.headers["stripe-signature"]!, "whsec_1", 300, undefined, 120_000)
      assert.strictEqual(event.type, "charge.succeeded")
    }))

  it.effect("is the same for the same seed", () =>
    Effect.gen(function*() {
      const run = Effect.gen(function*() {
        const sim = yield* StripeSim.makeInProcess()
        for (let n = 0; n < 20; n++) {
          const amount = yield* Random.nextIntBetween(100, 999)
          yield* ask(sim, "/v1/charges", `amount=${amount}&currency=usd&customer=cus_${n % 3}`)
        }
        const events = (yield* ask(sim, "/v1/events?limit=100")).body
        return { events, books: yield* sim.books, requests: yield* sim.requests }
      })
      const one = yield* Effect.scoped(Random.withSeed(run, "seed"))
      const same = yield* Effect.scoped(Random.withSeed(run, "seed"))
      const other = yield* Effect.scoped(Random.withSeed(run, "another seed"))
      assert.deepStrictEqual(same, one)
      assert.notDeepEqual(other.books, one.books)
    }))
})
