/** How a plain host ends, in order or killed, and what the next one does with what it left. Who was charged is judged by the books. */
import { assert, it } from "@effect/vitest"
import { type ChargeInput, isPurserError, Purser, type PurserHandle } from "@purser/purser"
import { StripeSim } from "@purser/stripe-sim"
import { Effect, Schedule } from "effect"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { temporaryFolder } from "../src/Store.ts"

const period = "2025-07"
const row = (index: number): ChargeInput => ({
  customerId: `c${index}`, billingPeriod: period, amountMinor: 1000, currency: "usd", stripeCustomerId: `cus_${index}`, paymentMethod: "pm_card_visa"
})
const rows = (count: number) => Array.from({ length: count }, (_, index) => row(index))
const confirms = { path: "/v1/payment_intents/*/confirm", times: "always" } as const

const settings = Effect.gen(function*() {
  const sim = yield* StripeSim
  return {
    PURSER_STRIPE_URL: sim.url, PURSER_STRIPE_KEY: "rk_test_plain", PURSER_DATA_DIR: yield* temporaryFolder, PURSER_PGLITE_FSYNC: "off",
    PURSER_SWEEP_INTERVAL: "50 millis", PURSER_LEASE: "1 second", PURSER_RUN_PAUSE: "50 millis"
  }
})
const made = (config: Record<string, string>) =>
  Effect.acquireRelease(Effect.promise(() => Purser.make(config)), ({ close }) => Effect.promise(close))
const opened = Effect.fnUntraced(function*(purser: PurserHandle) {
  yield* Effect.promise(() => purser.openCap({ billingPeriod: period, currency: "usd", expectedMinor: 100_000 }))
})
const paidAndAsked = Effect.gen(function*() {
  const sim = yield* StripeSim
  const books = yield* sim.books
  return [books.length, books.filter(({ payments }) => payments === 1).length]
})
const failureOf = (promise: Promise<unknown>) =>
  Effect.promise(() => promise.then((value) => value, (error: unknown) => isPurserError(error) ? error._tag : `untyped: ${String(error)}`))

it.live("close() finishes the charges in work, refuses later calls by a typed error, and lets go of whoever follows a run", () =>
  Effect.scoped(Effect.gen(function*() {
    const sim = yield* StripeSim
    const purser = yield* made(yield* settings)
    yield* opened(purser)
    const run = yield* Effect.promise(() => purser.run({ name: "july", rows: rows(2) }))
    yield* Effect.promise(() => run.done())
    yield* sim.faults.add({ match: confirms, action: { kind: "delay", at: "before", delayMs: 600 } })
    const held = yield* Effect.promise(() => purser.run({ name: "held", rows: [row(20)] }))
    const iterator = held[Symbol.asyncIterator]()
    yield* Effect.promise(() => iterator.next())
    const follow = (async () => {
      for (;;) if ((await iterator.next()).done === true) return "ended"
    })()
    const endOf = (one: Promise<unknown>) => one.then((value) => value, (error: unknown) => isPurserError(error) ? [error._tag, error.outcome] : String(error))
    const following = [follow, held.done()].map(endOf)
    const charging = Promise.all(rows(12).slice(2).map(purser.charge))
    yield* Effect.repeat(sim.requests, { until: (all) => all.filter(({ path }) => path.endsWith("/confirm")).length >= 13, schedule: Schedule.spaced("20 millis") })
    const closing = purser.close()
    assert.strictEqual(yield* failureOf(purser.charge(row(30))), "PurserClosed")
    assert.deepStrictEqual((yield* Effect.promise(() => charging)).map(({ _tag }) => _tag), Array.from({ length: 10 }, () => "Succeeded"))
    yield* Effect.promise(() => closing)
    // Its row was charged: whoever is let go is not told that nothing was begun.
    const unknown = ["PurserClosed", "unknown"]
    assert.deepStrictEqual(yield* Effect.promise(() => Promise.all([...following, endOf(held.done()), endOf(held[Symbol.asyncIterator]().next())])), [unknown, unknown, unknown, unknown])
    for (const late of [
      () => purser.charge(row(30)), () => purser.run({ name: "late", rows: rows(1) }), () => purser.getRun("july"), () => purser.status(), () => run.status(),
      () => run.done(), () => run.pause("x"), () => run.extend([]), () => purser.webhooks(new Request("http://x/", { method: "POST" })),
      () => run[Symbol.asyncIterator]().next()
    ]) assert.strictEqual(yield* failureOf(late()), "PurserClosed", String(late))
    const value = yield* Effect.promise(() => purser.results.charge(row(30)))
    assert.strictEqual(value._tag === "Failure" && value.error._tag === "PurserClosed" ? value.error.outcome : "", "not_charged")
    yield* Effect.promise(() => purser.close())
    assert.deepStrictEqual(yield* paidAndAsked, [13, 13])
  })).pipe(Effect.provide(StripeSim.layer())), 60_000)

it.live("what does not end within PURSER_DRAIN_TIMEOUT is told as unknown, and finished by the next host", () =>
  Effect.scoped(Effect.gen(function*() {
    const sim = yield* StripeSim
    const config = yield* settings
    const purser = yield* made({ ...config, PURSER_DRAIN_TIMEOUT: "100 millis" })
    yield* opened(purser)
    yield* sim.faults.add({ match: confirms, action: { kind: "delay", at: "after", delayMs: 600_000 } })
    const charging = rows(3).map((one) => purser.results.charge(one))
    yield* Effect.repeat(paidAndAsked, { until: ([, paid]) => paid === 3, schedule: Schedule.spaced("20 millis") })
    yield* Effect.promise(() => purser.close())
    const ends = yield* Effect.promise(() => Promise.all(charging))
    assert.deepStrictEqual(ends.map((end) => end._tag === "Failure" && end.error._tag === "PurserClosed" ? end.error.outcome : end), ["unknown", "unknown", "unknown"])
    yield* sim.faults.clear
    yield* sim.faults.release
    const next = yield* made(config)
    yield* Effect.repeat(Effect.promise(() => Promise.all(rows(3).map(next.find))), {
      until: (found) => found.every((one) => one?.state === "succeeded"), schedule: Schedule.spaced("50 millis")
    })
    assert.deepStrictEqual(yield* paidAndAsked, [3, 3])
  })).pipe(Effect.provide(StripeSim.layer())), 60_000)

/** A host that bills six rows by a run, two at a time, and charges one more. */
const program = `
import { Purser } from "@purser/purser"
const purser = await Purser.make()
await purser.openCap({ billingPeriod: "${period}", currency: "usd", expectedMinor: 100000 })
await purser.run({ name: "july", rows: ${JSON.stringify(rows(6))}, concurrency: 2 })
await purser.charge(${JSON.stringify(row(9))})
`

it.live("a killed host's charges and runs are finished by the next one, without being asked", () =>
  Effect.scoped(Effect.gen(function*() {
    const sim = yield* StripeSim
    const config = yield* settings
    yield* sim.faults.add({ match: confirms, action: { kind: "delay", at: "after", delayMs: 600_000 } })
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => spawn(process.execPath, ["--disable-warning=ExperimentalWarning", "--input-type=module", "--eval", program], {
        cwd: fileURLToPath(new URL("..", import.meta.url)), env: { ...process.env, PURSER_DATABASE_URL: "", ...config }, stdio: "inherit"
      })),
      (child) => Effect.sync(() => void child.kill("SIGKILL"))
    )
    yield* Effect.repeat(paidAndAsked, { until: ([, paid]) => paid === 3, schedule: Schedule.spaced("20 millis") })
    child.kill("SIGKILL")
    yield* Effect.promise(() => once(child, "close"))
    yield* sim.faults.clear
    yield* sim.faults.release
    const next = yield* made(config)
    yield* Effect.repeat(Effect.promise(() => Promise.all([...rows(6), row(9)].map(next.find))), {
      until: (found) => found.every((one) => one?.state === "succeeded"), schedule: Schedule.spaced("50 millis")
    })
    assert.deepInclude(yield* Effect.promise(async () => (await next.getRun("july")).done()), { state: "finished" })
    assert.deepStrictEqual(yield* paidAndAsked, [7, 7])
  })).pipe(Effect.provide(StripeSim.layer())), 60_000)
