/** The object for plain programs: values and typed failures, runs that are watched, and what a program may act upon. */
import { assert, describe, it } from "@effect/vitest"
import { type ChargeInput, isPurserError, Purser, type PurserError, type PurserHandle, type RunStatus } from "@purser/purser"
import { StripeSim } from "@purser/stripe-sim"
import { Effect, type Scope } from "effect"
import { type AddressInfo, createServer } from "node:net"
import { stores, temporaryFolder } from "../src/Store.ts"

const period = "2025-07"
const row = (index: number, paymentMethod = "pm_card_visa"): ChargeInput => ({
  customerId: `c${index}`, billingPeriod: period, amountMinor: 1000, currency: "usd", stripeCustomerId: `cus_${index}`, paymentMethod
})
const rows = (count: number) => Array.from({ length: count }, (_, index) => row(index))

/** A test in the words of a plain program. */
const hosted = (
  name: string,
  test: (purser: PurserHandle, sim: StripeSim["Service"]) => Promise<void>,
  config: Record<string, string> = {}
) =>
  it.live(name, () =>
    Effect.scoped(Effect.gen(function*() {
      const sim = yield* StripeSim
      const store = yield* stores.find(([name]) => name === "postgres")![1]
      const purser = yield* Effect.acquireRelease(
        Effect.promise(() => Purser.make({
          PURSER_STRIPE_URL: sim.url, PURSER_STRIPE_KEY: "rk_test_plain", PURSER_RUN_PAUSE: "50 millis", ...store, ...config
        })),
        (purser) => Effect.promise(() => purser.close())
      )
      yield* Effect.promise(() => test(purser, sim))
    }) as Effect.Effect<void, never, Scope.Scope | StripeSim>).pipe(Effect.provide(StripeSim.layer())), 60_000)

const books = (sim: StripeSim["Service"]) => Effect.runPromise(sim.books)

/** Exhaustive, so that the compiler holds the union: another member would not compile. */
const advice = (error: PurserError): string => {
  switch (error._tag) {
    case "InvalidInput":
    case "EngineUnavailable":
      return error.detail
    case "PurserClosed":
      return error.outcome
    case "ChargeError":
      return error.reason._tag === "RateLimited" ? `in ${error.reason.retryAfterMs} ms` : error.reason.message
    case "LedgerError":
      return error.reason._tag === "ChargeConflict" ? `it was ${error.reason.expected.amountMinor}` : error.message
    case "SpendCapError":
      return error.reason._tag === "CapExceeded" ? `the cap is ${error.reason.capMinor}` : error.message
    case "RefundError":
    case "RunError":
      return error.reason._tag
  }
}

describe("Purser.make", () => {
  hosted("gives each failure as a typed rejection, and as a value", async (purser) => {
    await purser.openCap({ billingPeriod: period, currency: "usd", expectedMinor: 5000 })
    assert.strictEqual((await purser.charge(row(1)))._tag, "Succeeded")
    const conflict = await purser.results.charge({ ...row(1), amountMinor: 2000 })
    assert.strictEqual(conflict._tag, "Failure")
    if (conflict._tag === "Failure") assert.strictEqual(advice(conflict.error), "it was 1000")
    const again = await purser.results.charge(row(1))
    assert.deepInclude(again._tag === "Success" ? again.value : {}, { _tag: "Succeeded", alreadySettled: true })
    const rejected: unknown = await purser.charge({ ...row(1), amountMinor: 2000 }).then(() => undefined, (error: unknown) => error)
    assert.isTrue(isPurserError(rejected) && Purser.isError(rejected))
    assert.isTrue(rejected instanceof Error)
    assert.strictEqual(isPurserError(rejected) ? advice(rejected) : "", "it was 1000")
    assert.isFalse(isPurserError(new Error("another")))
    assert.isFalse(isPurserError({ _tag: "toString" }))
    for (const wrong of [{ ...row(2), billingPeriod: "2025-13" }, { ...row(2), currency: "xxx" }, { ...row(2), amountMinor: 1.5 }, { ...row(2), customerId: " " }]) {
      const refused = await purser.results.charge(wrong)
      assert.strictEqual(refused._tag === "Failure" ? refused.error._tag : refused._tag, "InvalidInput", JSON.stringify(wrong))
    }
    const total = await purser.results.openCap({ billingPeriod: "2025-08", currency: "usd", expectedMinor: 1.5 })
    assert.strictEqual(total._tag === "Failure" ? advice(total.error) : "", "expectedMinor 1.5 is no whole number of minor units")
    // The cap's refusal is a settled answer, and no failure.
    assert.deepInclude(await purser.charge({ ...row(3), amountMinor: 9000 }), { _tag: "Rejected", code: "cap_exceeded" })
    assert.deepInclude(await purser.find(row(3)), { state: "rejected", attempt: 1, amountMinor: 9000 })
    assert.isUndefined(await purser.find(row(9)))
  })

  hosted("refuses what is not what is asked for by name, whichever call it is", async (purser) => {
    const name = { customerId: "c1", billingPeriod: period }
    const run = await purser.run({ name: "one", rows: [row(1)] })
    type Wrong = (purser: Record<string, (...input: ReadonlyArray<unknown>) => Promise<unknown>>) => Promise<unknown>
    const wrong: ReadonlyArray<readonly [string, Wrong]> = [
      ["reason", ({ startDunning }) => startDunning!(name)],
      ["reason", ({ cancelDunning }) => cancelDunning!({ ...name, reason: "" })],
      ["reason", ({ newCard }) => newCard!({})],
      ["stripeCustomerId", ({ newCard }) => newCard!({ reason: "x" })],
      ["paymentMethod", ({ newCard }) => newCard!({ stripeCustomerId: "cus_1", paymentMethod: 7, reason: "x" })],
      ["reason", ({ pause }) => pause!({})],
      ["actor", ({ pause }) => pause!({ reason: "x", actor: 7 })],
      ["reason", ({ retry }) => retry!(name)],
      ["object", ({ find }) => find!()],
      ["limit", ({ dunningCases }) => dunningCases!({ limit: "all" })],
      ["name", ({ getRun }) => getRun!()],
      ["expected", ({ run }) => run!({ name: "two", rows: [], expected: 5 })],
      ["allowPeriods", ({ run }) => run!({ name: "two", rows: [], allowPeriods: period })],
      ["reason", () => (run as unknown as Record<string, (reason: number) => Promise<unknown>>)["pause"]!(7)],
      ["reason", () => (run as unknown as Record<string, () => Promise<unknown>>)["cancel"]!()],
      ["rows", () => run.extend(5 as unknown as ReadonlyArray<ChargeInput>)],
      ["PURSER_WEBHOOK_SECRET", () => purser.webhooks(new Request("http://x/", { method: "POST" }))],
      ["configuration", () => Purser.make(5 as unknown as Record<string, string>)],
      ["PURSER_LEASE", () => Purser.make({ PURSER_LEASE: 5 } as unknown as Record<string, string>)],
      ["dunningGivenUp", () => Purser.make({}, { dunningGivenUp: 5 } as unknown as object)]
    ]
    for (const [word, call] of wrong) {
      const error: unknown = await call(purser as unknown as Parameters<Wrong>[0]).then(() => undefined, (error: unknown) => error)
      assert.isTrue(isPurserError(error) && error._tag === "InvalidInput" && error.detail.includes(word), `${word}: ${String(error)}`)
    }
  })

  hosted("pauses, tells how it stands, resumes, and asks once more for a decline", async (purser, sim) => {
    await purser.openCap({ billingPeriod: period, currency: "usd", expectedMinor: 5000 })
    const declined = await purser.charge(row(1, "pm_card_chargeDeclinedExpiredCard"))
    assert.strictEqual(declined._tag, "Declined")
    assert.isTrue(await purser.pause({ reason: "an incident" }))
    assert.isFalse(await purser.pause({ reason: "an incident" }))
    const paused = await purser.status({ billingPeriod: period })
    assert.deepInclude(paused.pauses[0], { cause: "person", actor: "program", reason: "an incident" })
    assert.deepInclude(paused.charges[0], { state: "declined", charges: 1, amountMinor: 1000, receivedMinor: 0 })
    const waiting = purser.charge(row(2))
    assert.isTrue(await purser.resume({ reason: "over" }))
    assert.strictEqual((await waiting)._tag, "Succeeded")
    const name = { customerId: "c1", billingPeriod: period }
    const retried = await purser.retry({ ...name, reason: "new card", paymentMethod: "pm_card_visa" })
    assert.strictEqual(retried._tag === "Retried" ? retried.outcome._tag : retried._tag, "Succeeded")
    assert.deepStrictEqual(await purser.retry({ ...name, reason: "again" }), { _tag: "NotRetried", state: "succeeded" })
    assert.deepStrictEqual((await books(sim)).map(({ payments }) => payments), [1, 1])
  })

  hosted("runs rows of an array, shows progress as they are settled, and charges nobody when the name comes again", async (purser, sim) => {
    const run = await purser.run({ name: "july", rows: [...rows(30), row(30, "pm_card_chargeDeclined")] })
    assert.isTrue(run.isNew)
    const seen: Array<RunStatus> = []
    for await (const status of run) seen.push(status)
    const last = seen.at(-1)!
    assert.deepInclude(last, { name: "july", state: "finished", receivedMinor: { usd: 30_000 } })
    assert.deepStrictEqual(JSON.parse(JSON.stringify(await run.status())), last)
    assert.strictEqual(typeof JSON.stringify(await purser.status()), "string")
    assert.deepInclude(last.counts, { rows: 31, open: 0, succeeded: 30, declined: 1 })
    assert.deepStrictEqual(await run.done(), last)
    const again = await purser.run({ name: "july", rows: rows(20) })
    assert.deepStrictEqual([again.isNew, again.runId, (await again.done()).counts.rows], [false, run.runId, 31])
    assert.deepStrictEqual((await purser.getRun("july")).runId, run.runId)
    const unknown = await purser.results.getRun("august")
    assert.strictEqual(unknown._tag === "Failure" && unknown.error._tag === "RunError" ? unknown.error.reason._tag : "", "UnknownRun")
    // Rows that the run does not have are not passed over: they are refused, or added by name.
    const late = await purser.results.run({ name: "july", rows: [...rows(30), row(40), row(41)] })
    assert.match(late._tag === "Failure" ? late.error.message : "", /2 of these rows are not among its own \(the first is row 31\)/)
    const dearer = await purser.results.run({ name: "july", rows: [{ ...row(3), amountMinor: 1001 }] })
    assert.match(dearer._tag === "Failure" ? dearer.error.message : "", /has 1 of these rows with other terms \(the first is row 1\): (?!.*extend)/)
    assert.strictEqual((await books(sim)).filter(({ payments }) => payments > 0).length, 30)
    await run.extend([...rows(30), row(40), row(41)])
    assert.deepInclude((await run.done()).counts, { rows: 33, open: 0, succeeded: 32, declined: 1 })
    assert.deepInclude(await run.extend([row(40)]), { state: "finished" })
    const changed: unknown = await run.extend([row(40), { ...row(3), amountMinor: 1001 }, row(42)]).then(() => undefined, (error: unknown) => error)
    assert.strictEqual(isPurserError(changed) && changed._tag === "RunError" ? changed.reason._tag : "", "TermsChanged")
    assert.deepStrictEqual(isPurserError(changed) ? [changed.outcome, changed.message.includes("at line 2")] : [], ["not_charged", true])
    const tooMuch: unknown = await run.extend(rows(60).slice(31)).then(() => undefined, (error: unknown) => error)
    assert.strictEqual(isPurserError(tooMuch) && tooMuch._tag === "RunError" ? tooMuch.reason._tag : "", "TotalOverCap")
    assert.deepInclude((await run.status()).counts, { rows: 33 })
    const paid = (await books(sim)).filter(({ payments }) => payments > 0)
    assert.deepStrictEqual([paid.length, paid.every(({ payments }) => payments === 1)], [32, true])
  })

  hosted("refuses the rows of whoever comes second, when two give a name at once with other rows", async (purser, sim) => {
    const of = (at: number, amountMinor = 1000) => ({ ...row(at), amountMinor, billingPeriod: "2025-06" })
    await purser.openCap({ billingPeriod: "2025-06", currency: "usd", expectedMinor: 20_000 })
    const asked = await Promise.all([[of(0), of(1)], [of(0), of(1, 1001)], [of(5)]].map((given) => purser.results.run({ name: "race", rows: given })))
    const won = asked.filter(({ _tag }) => _tag === "Success")
    assert.strictEqual(won.length, 1)
    for (const one of asked) if (one._tag === "Failure") assert.match(one.error.message, /the run "race" is there already/)
    const run = await purser.getRun("race")
    await run.done()
    assert.isTrue((await books(sim)).every(({ payments }) => payments <= 1))
  })

  hosted("takes rows as they come, and starts nothing when their source fails or one of them is wrong", async (purser, sim) => {
    async function* coming(count: number, fails: boolean) {
      for (const one of rows(count)) yield await Promise.resolve(one)
      if (fails) throw new Error("the other database is away")
    }
    const broken = await purser.results.run({ name: "broken", rows: coming(5, true) })
    assert.match(broken._tag === "Failure" ? broken.error.message : "", /after 5: .*the other database is away/)
    const wrong = await purser.results.run({ name: "wrong", rows: [row(0), { ...row(1), amount: 1 } as ChargeInput] })
    assert.match(wrong._tag === "Failure" ? wrong.error.message : "", /^row 2: [^]*amount"?\]/)
    for (const rows of [undefined, null, 5] as unknown as ReadonlyArray<ReadonlyArray<ChargeInput>>) {
      const none = await purser.results.run({ name: "none", rows })
      assert.match(none._tag === "Failure" ? none.error.message : "", /rows must be an array/)
    }
    const half = await purser.results.run({ name: "half", rows: rows(1), expected: [{ billingPeriod: period, currency: "usd", expectedMinor: 0.5 }] })
    assert.match(half._tag === "Failure" ? half.error.message : "", /0\.5 is no whole number/)
    const field = await purser.results.run({ name: "field", rows: [], concurency: 1 } as unknown as Parameters<typeof purser.run>[0])
    assert.match(field._tag === "Failure" ? field.error.message : "", /concurency/)
    const twice = await purser.results.run({ name: "twice", rows: [row(0), row(0)] })
    assert.strictEqual(twice._tag === "Failure" && twice.error._tag === "RunError" ? twice.error.reason._tag : "", "DuplicateIdentities")
    const total = await purser.results.run({ name: "total", rows: rows(3), expected: [{ billingPeriod: period, currency: "usd", expectedMinor: 1000 }] })
    assert.strictEqual(total._tag === "Failure" && total.error._tag === "RunError" ? total.error.reason._tag : "", "TotalOverCap")
    assert.deepStrictEqual(await books(sim), [])
    const run = await purser.run({ name: "coming", rows: coming(12, false), expected: [{ billingPeriod: period, currency: "usd", expectedMinor: 12_000 }] })
    assert.deepInclude((await run.done()).counts, { rows: 12, succeeded: 12 })
    assert.strictEqual((await books(sim)).length, 12)
  })

  hosted("holds a run, goes on with it, and cancels another for good", async (purser, sim) => {
    await purser.openCap({ billingPeriod: period, currency: "usd", expectedMinor: 40_000 })
    await Effect.runPromise(sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", nth: 3, times: "always" }, action: { kind: "delay", at: "before", delayMs: 600_000 } }))
    const run = await purser.run({ name: "held", rows: rows(20), concurrency: 2 })
    for await (const { counts } of run) if (counts.succeeded >= 2) break
    assert.strictEqual((await run.pause("an incident")).state, "paused")
    await Effect.runPromise(sim.faults.clear)
    await Effect.runPromise(sim.faults.release)
    const held = (await run.status()).counts
    assert.isBelow(held.succeeded, 20)
    await run.resume()
    assert.deepInclude((await run.done()).counts, { succeeded: 20 })
    await Effect.runPromise(sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", times: "always" }, action: { kind: "delay", at: "before", delayMs: 600_000 } }))
    const others = await purser.run({ name: "canceled", rows: rows(20).map((one) => ({ ...one, item: "late" })), concurrency: 2 })
    await others.cancel("a mistake")
    await Effect.runPromise(sim.faults.clear)
    await Effect.runPromise(sim.faults.release)
    const ended = await others.done()
    assert.strictEqual(ended.state, "canceled")
    assert.isBelow(ended.counts.succeeded, 20)
    const late = (await books(sim)).filter(({ item }) => item === "late")
    assert.strictEqual(late.length, ended.counts.succeeded)
    assert.isTrue((await books(sim)).every(({ payments }) => payments === 1))
  })
})

/** A port that somebody else has, until it is freed. */
const takenPort = () => new Promise<{ readonly port: number; readonly free: () => Promise<void> }>((resolve) => {
  const server = createServer().listen(0, "127.0.0.1", () => resolve({
    port: (server.address() as AddressInfo).port, free: () => new Promise((done) => server.close(() => done()))
  }))
})

describe("an engine that does not start", () => {
  hosted("beyond the loopback without leave fails the run that needs it, typed, and no charge", async (purser) => {
    const failed = await purser.results.run({ name: "july", rows: [row(1)] })
    assert.strictEqual(failed._tag, "Failure")
    if (failed._tag !== "Failure") return
    assert.deepStrictEqual([failed.error._tag, isPurserError(failed.error), "isRetryable" in failed.error && failed.error.isRetryable], ["EngineUnavailable", true, false])
    assert.include(failed.error.message, "PURSER_RUNNER_ALLOW_PLAIN")
    assert.strictEqual(await purser.getRun("july").catch(({ _tag }) => String(_tag)), "EngineUnavailable")
    await purser.openCap({ billingPeriod: period, currency: "usd", expectedMinor: 5000 })
    assert.strictEqual((await purser.charge(row(1)))._tag, "Succeeded")
  }, { PURSER_RUNNER_HOST: "0.0.0.0" })

  it.live("because its port is taken starts with the next run, once that is free", () =>
    Effect.scoped(Effect.gen(function*() {
      const sim = yield* StripeSim
      const store = yield* stores.find(([name]) => name === "postgres")![1]
      const { free, port } = yield* Effect.promise(takenPort)
      const purser = yield* Effect.acquireRelease(
        Effect.promise(() => Purser.make({ PURSER_STRIPE_URL: sim.url, PURSER_STRIPE_KEY: "rk_test_plain", PURSER_RUNNER_PORT: String(port), ...store })),
        (purser) => Effect.promise(() => purser.close())
      )
      const july = () => purser.results.run({ name: "july", rows: [row(1)] })
      const [failed, beside] = yield* Effect.promise(() => Promise.all([july(), july()]))
      assert.deepStrictEqual([failed._tag, beside._tag], ["Failure", "Failure"])
      if (failed._tag === "Failure") assert.match(failed.error.message, /^the workflow engine did not start: its address cannot be used: .*EADDRINUSE/)
      yield* Effect.promise(free)
      const run = yield* Effect.promise(july)
      assert.strictEqual(run._tag, "Success")
      if (run._tag === "Success") assert.strictEqual((yield* Effect.promise(() => run.value.done())).state, "finished")
      assert.deepStrictEqual((yield* sim.books).map(({ payments }) => payments), [1])
    })).pipe(Effect.provide(StripeSim.layer())), 60_000)
})

it.live("Purser.make that cannot start says why, and leaves nothing open", () =>
  Effect.scoped(Effect.gen(function*() {
    const sim = yield* StripeSim
    const config = { PURSER_STRIPE_URL: sim.url, PURSER_STRIPE_KEY: "rk_test_plain", PURSER_DATA_DIR: yield* temporaryFolder, PURSER_PGLITE_FSYNC: "off" }
    const refused = yield* Effect.promise(() => Purser.make({ ...config, PURSER_DUNNING: "on", PURSER_RUNNER_PORT: "70000" }).then(() => "", String))
    assert.include(refused, "PURSER_RUNNER_PORT")
    // The folder of the embedded database belongs to one at a time.
    const purser = yield* Effect.promise(() => Purser.make(config))
    yield* Effect.promise(() => purser.close())
  })).pipe(Effect.provide(StripeSim.layer())), 60_000)
