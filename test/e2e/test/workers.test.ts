/**
 * Workers as processes of their own, on one PostgreSQL: some die, some stand still, some are told to go. And two workers
 * that are made to meet at each step of one charge, with a Stripe that knows no idempotency keys.
 */
import { assert, describe, it } from "@effect/vitest"
import { type ChargeKey, FaultPoint, type FaultPlace, faultPlaces } from "@purser/core"
import { ChargePipeline, PipelineOptions, retryPolicy } from "@purser/engine"
import * as TestDatabase from "@purser/postgres/TestDatabase"
import { StripeSim } from "@purser/stripe-sim"
import { chargeFor } from "@purser/testkit"
import { Deferred, Effect, Exit, Fiber, Layer } from "effect"
import { csv, type Desk, desk, paidAtLeast, tens } from "../src/Desk.ts"
import { freePort } from "../src/Proxy.ts"
import { advance, openCap, payments, world } from "../src/World.ts"

const endpoint = Effect.map(freePort, (port) => `tcp://127.0.0.1:${port}`)

const startWorker = Effect.fnUntraced(function*(at: Desk, address: string, env: Readonly<Record<string, string>> = {}) {
  const worker = yield* at.start(["worker", "--endpoint", address], env)
  yield* worker.says(`worker on ${address}`)
  return worker
})

const everyRowOnce = Effect.fnUntraced(function*({ paid }: Desk, rows: number) {
  const books = yield* paid
  assert.deepStrictEqual([books.length, books.every((entry) => entry.payments === 1)], [rows, true])
})

describe("workers elsewhere", () => {
  it.live("one is killed, one stands still and wakes when all is done: one payment per row", () =>
    Effect.scoped(Effect.gen(function*() {
      const rows = 40
      const at = yield* desk()
      yield* at.sim.setIdempotency(false)
      at.write("bills.csv", csv(...tens(rows)))
      const a = yield* endpoint
      const b = yield* endpoint
      // Confirms take a while, so that the worker that stands still does so with charges in its hands.
      yield* at.sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", times: "always" }, action: { kind: "delay", at: "during", delayMs: 30 } })
      const killed = yield* startWorker(at, a, { PURSER_FAULT: "after-confirm:6" })
      const still = yield* startWorker(at, b)
      const run = yield* at.start(["run", "bills.csv", "--json", "--workers", "0", "--concurrency", "8"], {
        PURSER_ENDPOINT: `${a},${b}`, PURSER_REQUEST_TIMEOUT: "700 millis", PURSER_REQUEST_RETRIES: "1", PURSER_CLIENT_SOCKETS: "4"
      })
      assert.strictEqual((yield* run.meanwhile(killed.ended)).signal, "SIGKILL")
      yield* still.kill("SIGSTOP")
      const next = yield* startWorker(at, a)
      const ended = yield* run.ended
      assert.strictEqual(ended.code, 0, ended.stderr)
      assert.deepStrictEqual([ended.json?.["succeeded"], ended.json?.["paidMinor"]], [rows, { usd: rows * 1000 }])
      yield* everyRowOnce(at, rows)
      yield* still.kill("SIGCONT")
      for (const worker of [still, next]) {
        yield* worker.kill("SIGTERM")
        const { code, signal, stderr } = yield* worker.ended
        assert.deepStrictEqual([code, signal], [0, null], stderr)
      }
      yield* everyRowOnce(at, rows)
    })).pipe(Effect.provide(StripeSim.layer())), 120_000)

  it.live("a worker that is told to go finishes what it has taken, answers, and ends with 0", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* desk()
      at.write("bills.csv", csv(...tens(4)))
      const address = yield* endpoint
      yield* at.sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", times: "always" }, action: { kind: "delay", at: "after", delayMs: 600_000 } })
      const worker = yield* startWorker(at, address)
      const run = yield* at.start(["run", "bills.csv", "--json", "--workers", "0"], { PURSER_ENDPOINT: address })
      yield* run.meanwhile(paidAtLeast(at.sim, 4))
      yield* worker.kill("SIGTERM")
      yield* at.sim.faults.release
      const { code, signal, stderr } = yield* worker.ended
      assert.deepStrictEqual([code, signal], [0, null], stderr)
      const ended = yield* run.ended
      assert.deepStrictEqual([ended.code, ended.json?.["succeeded"]], [0, 4], ended.stderr)
      yield* everyRowOnce(at, 4)
    })).pipe(Effect.provide(StripeSim.layer())), 120_000)
})

for (const [name, database] of TestDatabase.layers) {
  describe(`two workers on one request, no idempotency at Stripe, on ${name}`, () => {
    it.live("who meet at any step make one payment", () =>
      Effect.gen(function*() {
        yield* (yield* StripeSim).setIdempotency(false)
        yield* openCap(chargeFor("any", "2026-07"))
        for (const place of faultPlaces) {
          const request = chargeFor(`meet-${place}`, "2026-07")
          const first = yield* meetingAt(place, request.chargeKey)
          const one = yield* Effect.forkChild(Effect.exit(workerAt("one", first, request)))
          yield* Effect.raceFirst(first.arrived, Fiber.await(one))
          // Its lease runs out under its hands, and the other one takes over up to the same step.
          yield* advance("1 minute")
          const second = yield* meetingAt(place, request.chargeKey)
          const other = yield* Effect.forkChild(Effect.exit(workerAt("other", second, request)))
          yield* Effect.raceFirst(second.arrived, Fiber.await(other))
          yield* Effect.all([first.go, second.go])
          const exits = [yield* Fiber.join(one), yield* Fiber.join(other)]
          assert.isTrue(exits.some(Exit.isSuccess), `${place}: one of the two has the outcome`)
          assert.strictEqual(yield* payments(request), 1, place)
          const last = yield* Effect.flatMap(ChargePipeline, (pipeline) => pipeline.charge(request))
          assert.deepStrictEqual([last._tag, last.alreadySettled], ["Succeeded", true], place)
          assert.strictEqual(yield* payments(request), 1, place)
        }
      }).pipe(Effect.provide(world(database))), 120_000)
  })
}

interface Meeting {
  readonly place: FaultPlace
  readonly chargeKey: ChargeKey
  readonly arrived: Effect.Effect<void>
  readonly arrive: Effect.Effect<void>
  readonly go: Effect.Effect<boolean>
}

/** A worker that comes to the place says so and waits there, once. */
const meetingAt = Effect.fnUntraced(function*(place: FaultPlace, chargeKey: ChargeKey): Effect.fn.Return<Meeting> {
  const arrived = yield* Deferred.make<void>()
  const go = yield* Deferred.make<void>()
  return {
    place,
    chargeKey,
    arrived: Deferred.await(arrived),
    arrive: Effect.andThen(Deferred.succeed(arrived, undefined), Deferred.await(go)),
    go: Deferred.succeed(go, undefined)
  }
})

/** A worker of its own, with a pipeline of its own, that charges the request. */
const workerAt = (worker: string, meeting: Meeting, request: ReturnType<typeof chargeFor>) =>
  Effect.flatMap(ChargePipeline, (pipeline) => pipeline.charge(request)).pipe(
    Effect.provide(
      ChargePipeline.layer.pipe(
        Layer.provide(Layer.succeed(FaultPoint, (place, chargeKey) =>
          place === meeting.place && chargeKey === meeting.chargeKey ? meeting.arrive : Effect.void)),
        Layer.provide(PipelineOptions.layer({ worker, retry: retryPolicy({ attemptsMax: 4, backoffMs: 1, backoffMaxMs: 5 }), handBackMs: 0 }))
      ),
      { local: true }
    )
  )
