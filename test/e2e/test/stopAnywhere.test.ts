/** SIGTERM at whatever moment of a run or a runner, from its first instruction to after its last charge: it ends within its bounds, and everybody pays once. */
import { assert, describe, it } from "@effect/vitest"
import { StripeSim } from "@purser/stripe-sim"
import { Clock, Effect, Option } from "effect"
import { csv, desk, type Desk, tens } from "../src/Desk.ts"
import type { Ended, Running } from "../src/Purser.ts"
import { stores } from "../src/Store.ts"

const tries = Number(process.env["STOP_TRIES"] ?? 8)
/** What was taken is finished for `PURSER_DRAIN_TIMEOUT`, and what is open is closed for `PURSER_RUNNER_TAKEOVER`; the rest is a busy machine. */
const boundMs = 10_000 + 6_000 + 10_000
const settings = { PURSER_RUN_PAGE: "10" }

const slowly = (at: Desk) =>
  at.sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", times: "always" }, action: { kind: "delay", at: "during", delayMs: 30 } })
const timed = <A>(effect: Effect.Effect<A>) =>
  Effect.gen(function*() {
    const fromMs = yield* Clock.currentTimeMillis
    return { value: yield* effect, ms: (yield* Clock.currentTimeMillis) - fromMs }
  })

/** Stops it then, and answers how it ended and after how long; a process that does not end fails the test with what it said. */
const stopAfter = Effect.fnUntraced(function*(ms: number, running: Running) {
  yield* Effect.sleep(ms)
  yield* running.kill("SIGTERM")
  const { ms: tookMs, value } = yield* timed(Effect.timeoutOption(running.ended, boundMs))
  assert.isTrue(Option.isSome(value), `SIGTERM after ${ms} ms: it has not ended after ${boundMs} ms`)
  const ended: Ended = Option.getOrThrow(value)
  // Before its handlers are there the signal ends it, before it serves that is status 130, and after its work it has ended by itself.
  assert.isTrue(ended.signal === "SIGTERM" || ended.code === 0 || ended.code === 130, `SIGTERM after ${ms} ms: ${ended.code} ${ended.signal}\n${ended.stderr}`)
  return { tookMs, code: ended.code }
})
const onceEach = (at: Desk, customers: number) =>
  Effect.map(at.paid, (books) => {
    assert.strictEqual(books.length, customers)
    assert.deepStrictEqual(new Set(books.map(({ payments }) => payments)), new Set([1]))
  })

describe("SIGTERM at any moment", () => {
  for (const [name, store] of stores) {
    it.live(`of a run on ${name}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const at = yield* desk(store)
        yield* slowly(at)
        const file = (round: number) => at.write("bills.csv", csv(...tens(16).map((row) => row.replace(/^c/, `r${round}-`))))
        const args = ["run", "bills.csv", "--json", "--concurrency", "2", "--over-cap", "fits"]
        yield* at.purser(["cap", "open", "2026-07", "--currency", "usd", "--expected-total", "1000000.00"])
        file(0)
        const whole = yield* timed(at.purser(args, settings))
        assert.strictEqual(whole.value.code, 0, whole.value.stderr)
        const took: Array<string> = []
        for (let round = 1; round <= tries; round++) {
          file(round)
          const afterMs = Math.round((round - 0.5) / tries * whole.ms)
          const { code, tookMs } = yield* stopAfter(afterMs, yield* at.start(args, settings))
          took.push(`${afterMs}: ${tookMs} (${code})`)
          const finished = yield* at.purser(args, settings)
          assert.deepStrictEqual([finished.code, finished.json?.["succeeded"]], [0, 16], finished.stderr)
        }
        yield* Effect.logInfo(`a run on ${name}: ${took.join(", ")}`)
        yield* onceEach(at, 16 * (tries + 1))
      })).pipe(Effect.provide(StripeSim.layer())), tries * 60_000)

    it.live(`of a runner on ${name}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const at = yield* desk(store)
        yield* slowly(at)
        const rows = 24 * tries
        yield* at.purser(["run", at.write("july.csv", csv(...tens(rows))), "--detach", "--concurrency", "2"], settings)
        const start = at.start(["runner", "--transport", "memory"], settings)
        const up = yield* timed(Effect.flatMap(start, (runner) => Effect.tap(Effect.succeed(runner), runner.says("workers"))).pipe(Effect.scoped) as Effect.Effect<Running>)
        const took: Array<string> = []
        for (let round = 1; round <= tries; round++) {
          // Up to as long again as it takes to be up: in the middle of the dispatch.
          const afterMs = Math.round((round - 0.5) / tries * up.ms * 2)
          const { code, tookMs } = yield* stopAfter(afterMs, yield* start)
          took.push(`${afterMs}: ${tookMs} (${code})`)
        }
        yield* Effect.logInfo(`a runner on ${name}: ${took.join(", ")}`)
        const last = yield* start
        // The rounds may have charged all rows already.
        yield* last.says("workers")
        yield* last.meanwhile(Effect.repeat(at.paid, { until: (paid) => paid.length >= rows }))
        // After the last charge, while the run comes to its end.
        assert.strictEqual((yield* stopAfter(0, last)).code, 0)
        yield* onceEach(at, rows)
      })).pipe(Effect.provide(StripeSim.layer())), tries * 60_000)
  }
})
