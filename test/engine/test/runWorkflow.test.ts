/** A billing run as a workflow, on the engine in memory: planned, charged, held, canceled, extended, with stages around. */
import { BillingPeriod, type ChargeRequest, Ledger, LedgerError, LedgerUnavailable, RunRegistry, RunStash, SpendCap } from "@purser/core"
import { BillingRun, ChargePipeline, type Difference, Reconciler, RunDefinition, RunDefinitions, type RunReport, retryCharge, Runs, tendRuns } from "@purser/engine"
import { chargeFor, FaultPlan, MockGateway } from "@purser/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Layer, Logger, Queue, Ref, Schedule, Schema, Stream } from "effect"
import { bookWith, paid, Params, payments, plain, report, requests, rowsOf, run, start, until, view, wish, world } from "../src/RunWorld.ts"

/** Says so of what is staged, for as long as it says anything. */
const bookThatSays = (says: Ref.Ref<string | null>) =>
  bookWith(({ stage }) => ({
    stage: (runId, rows) => Effect.flatMap(Ref.get(says), (detail) => detail === null
      ? stage(runId, rows)
      : Effect.fail(new LedgerError({ reason: new LedgerUnavailable({ operation: "stage rows", detail }), chargeKey: null })))
  }))

describe("a run", () => {
  run("charges every row once, whoever starts it how often", RunDefinitions.layer(plain), Effect.gen(function*() {
    const answers = yield* Effect.forEach([1, 2, 3], () => start(wish("july", { count: 35, from: 0 })), { concurrency: "unbounded" })
    assert.strictEqual(answers.filter(({ isNew }) => isNew).length, 1)
    assert.strictEqual(new Set(answers.map((answer) => answer.run.runId)).size, 1)
    const end = yield* report("july")
    assert.deepStrictEqual([end.state, end.rows, end.open, end.notes], ["finished", 35, 0, []])
    const again = yield* start(wish("july", { count: 35, from: 0 }))
    assert.deepStrictEqual([again.isNew, again.run.state], [false, "finished"])
    assert.deepStrictEqual(new Set(yield* payments(requests(35))), new Set([1]))
    const { run: found, counted } = yield* view("july")
    assert.deepStrictEqual([found.runner, found.round, counted.map(({ rows, state }) => [state, rows])], ["test", 1, [["succeeded", 35]]])
    const events = yield* (yield* RunRegistry).events(found.runId)
    assert.deepStrictEqual(events.map(({ act }) => act), ["waiting", "taken", "planned", "running", "finished"])
  }))

  run("is extended with late rows, and charges those alone", RunDefinitions.layer(plain), Effect.gen(function*() {
    yield* start(wish("july", { count: 15, from: 0 }, { options: { ...wish("", {}).options, headroomPercent: 200 } }))
    yield* report("july")
    const runs = yield* Runs
    yield* runs.extend({ run: "july", params: { count: 20, from: 5 }, actor: "test" })
    const end = yield* report("july")
    assert.deepStrictEqual([end.round, end.state, end.rows, end.open], [2, "finished", 25, 0])
    assert.deepStrictEqual(new Set(yield* payments(requests(25))), new Set([1]))
    // What the cap has no room for is refused as a whole, and the run keeps what it had.
    yield* runs.extend({ run: "july", params: { count: 20, from: 25 }, actor: "test" })
    assert.include((yield* Effect.flip(report("july"))).message, "cap")
    assert.deepStrictEqual((yield* view("july")).counted.map(({ rows, state }) => [state, rows]), [["succeeded", 25]])
  }))

  run("fails before anything is charged when the rows are refused, and says why", RunDefinitions.layer(plain), Effect.gen(function*() {
    const late = wish("early", { count: 3, from: 0 }, { options: { reconcile: false, expected: [{ billingPeriod: "2026-08", currency: "usd" as never, expectedMinor: "1" }] } })
    yield* start(late)
    const error = yield* Effect.flip(report("early"))
    assert.strictEqual(error._tag === "RunError" ? error.reason._tag : error._tag, "TotalUnexpected")
    const { run: found } = yield* view("early")
    assert.deepStrictEqual([found.state, found.detail], ["failed", error.message])
    assert.strictEqual(yield* paid(requests(3)), 0)
    yield* start(wish("unknown", {}, { definition: "nobody's" }))
    assert.include((yield* Effect.flip(report("unknown"))).message, "nobody's")
    yield* start(wish("params", { count: "many" }))
    assert.include((yield* Effect.flip(report("params"))).message, "source")
    assert.deepStrictEqual((yield* start(wish("params", { count: 3, from: 0 }))).run.state, "failed")
    yield* (yield* Runs).extend({ run: "params", params: { count: 3, from: 0 }, actor: "test" })
    assert.strictEqual((yield* report("params")).state, "finished")
    assert.strictEqual(yield* paid(requests(3)), 3)
  }))

  run("closes the caps of its periods when it is told to, once all is settled", RunDefinitions.layer(plain), Effect.gen(function*() {
    yield* start(wish("closing", { count: 3, from: 0 }, { options: { ...wish("", {}).options, closePeriod: true } }))
    assert.deepStrictEqual((yield* report("closing")).notes, [])
    assert.deepStrictEqual((yield* (yield* SpendCap).report()).map(({ closed }) => closed), [true])
    yield* (yield* Runs).extend({ run: "closing", params: { count: 1, from: 3 }, actor: "test" })
    assert.include((yield* Effect.flip(report("closing"))).message, "closed")
    assert.strictEqual(yield* paid(requests(4)), 3)
  }))

  run("leaves a cap open under which a decline is still asked for, and says so", RunDefinitions.layer(plain), Effect.gen(function*() {
    const pipeline = yield* ChargePipeline
    const poor = chargeFor("poor", "2026-07", { paymentMethod: "pm_card_visa_chargeDeclinedInsufficientFunds" })
    yield* (yield* SpendCap).open({ ...poor, expectedMinor: 100_000n, headroomPercent: 110 })
    assert.strictEqual((yield* pipeline.charge(poor))._tag, "Declined")
    const options = { ...wish("", {}).options, closePeriod: true }
    yield* start(wish("closing", { count: 3, from: 0 }, { options }))
    const note = "the cap of 2026-07 usd stays open: 1 declined charge is still asked for"
    assert.deepStrictEqual((yield* report("closing")).notes, [note])
    assert.strictEqual((yield* view("closing")).run.detail, note)
    const caps = Effect.flatMap(SpendCap, (cap) => Effect.map(cap.report(), (all) => all.map(({ closed }) => closed)))
    assert.deepStrictEqual(yield* caps, [false])
    const found = (yield* (yield* Ledger).find(poor.chargeKey))!
    assert.strictEqual((yield* retryCharge(found, { actor: "test", reason: "new card", paymentMethod: "pm_card_visa" }))?._tag, "Succeeded")
    yield* start(wish("closed", { count: 1, from: 3 }, { options }))
    assert.deepStrictEqual((yield* report("closed")).notes, [])
    assert.deepStrictEqual(yield* caps, [true])
  }))

  run("that nobody told the engine of, or nobody woke, is found in the register", RunDefinitions.layer(plain), Effect.gen(function*() {
    const registry = yield* RunRegistry
    const options = { ...wish("", {}).options, headroomPercent: 200 }
    yield* registry.register({ ...wish("orphan", { count: 3, from: 0 }), runId: "orphan-1", state: "waiting", options })
    yield* tendRuns
    yield* until(view("orphan"), (one) => one.run.state === "finished")
    yield* registry.register({ ...wish("asleep", { count: 3, from: 3 }), runId: "asleep-1", state: "waiting", options })
    yield* (yield* Runs).pause("asleep", "ops", "not yet")
    yield* tendRuns
    yield* until(view("asleep"), (one) => one.run.step?.startsWith("hold/") === true)
    yield* registry.change({ runId: "asleep-1", from: ["paused"], to: "canceling", actor: "ops" })
    yield* tendRuns
    yield* until(view("asleep"), (one) => one.run.state === "canceled")
    assert.strictEqual(yield* paid(requests(6)), 3)
  }))

  run("is canceled while its source has no end", RunDefinitions.layer(
    RunDefinition.rows("plain", { params: Params, rows: ({ count }) => Stream.concat(Stream.make(rowsOf(requests(count))), Stream.never) }),
    RunDefinition.items("staged by stages", { params: Params, item: Schema.Int, items: () => Stream.concat(Stream.make(1), Stream.never), chunkSize: 1 }).charge((item) => chargeFor(`c${item}`, "2026-07"))
  ), Effect.gen(function*() {
    const runs = yield* Runs
    for (const definition of ["plain", "staged by stages"]) {
      yield* start(wish(definition, { count: 3, from: 0 }, { definition }))
      yield* until(view(definition), (one) => one.run.step === "plan" || one.run.step === "source")
      yield* runs.cancel(definition, "ops", "never ends")
      const end = yield* report(definition)
      assert.deepStrictEqual([end.state, end.rows, end.open], ["canceled", 0, 0])
      assert.strictEqual((yield* view(definition)).run.state, "canceled")
    }
    assert.strictEqual(yield* paid(requests(3)), 0)
  }))

  it.live("fails on what its store refuses for good, and says why it waits for one that is away", () =>
    Effect.gen(function*() {
      const says = yield* Ref.make<string | null>("23505 duplicate key value violates unique constraint \"run_rows_pkey\"")
      yield* Effect.gen(function*() {
        yield* start(wish("refused", { count: 3, from: 0 }))
        yield* until(view("refused"), (one) => one.run.state === "failed")
        assert.include((yield* view("refused")).run.detail, "23505 duplicate key value violates unique constraint")
        yield* Ref.set(says, "57P01 terminating connection due to administrator command")
        yield* start(wish("patient", { count: 3, from: 0 }))
        const waiting = yield* until(view("patient"), (one) => one.run.detail !== null)
        assert.include(waiting.run.detail, "waits for a store: the ledger is unavailable for stage rows: 57P01 terminating connection")
        yield* Ref.set(says, null)
        const end = yield* report("patient")
        assert.deepStrictEqual([end.state, end.rows, (yield* view("patient")).run.detail], ["finished", 3, null])
        assert.strictEqual(yield* paid(requests(3)), 3)
      }).pipe(Effect.provide(world(RunDefinitions.layer(plain), "1 day", bookThatSays(says))))
    }))

  run("that was planned where it was handed over is extended with what was planned behind it, and refuses to read a source", RunDefinitions.layer(plain), Effect.gen(function*() {
    const runs = yield* Runs
    const planner = yield* BillingRun
    const plan = (runId: string, charges: ReadonlyArray<ChargeRequest>, late?: { readonly extends: string }) =>
      planner.plan({
        runId, source: "handed over", rows: Stream.make(rowsOf(charges)), ...late,
        decide: ({ totals }) => Effect.succeed(totals.map(({ total }) => ({ scope: total, expected: late === undefined ? { expectedMinor: total.amountMinor, headroomPercent: 200 } : undefined })))
      })
    yield* plan("staged-1", requests(3))
    yield* start(wish("staged", { file: "a" }, { definition: "staged", plannedAs: "staged-1" }))
    assert.strictEqual((yield* report("staged")).state, "finished")
    const reasons = yield* Effect.forEach([{}, { params: { file: "b" } }, { definition: "plain", params: {} }], (more) =>
      Effect.map(Effect.flip(runs.extend({ run: "staged", actor: "test", ...more })), ({ message }) => message))
    assert.deepStrictEqual(reasons.map((reason) => /no source to read again|reads no source/.exec(reason)?.[0]), ["no source to read again", "reads no source", "reads no source"])
    assert.deepStrictEqual([(yield* view("staged")).run.round, (yield* view("staged")).run.params], [1, { file: "a" }])
    yield* plan("staged-1/2", requests(5), { extends: "staged-1" })
    yield* runs.extend({ run: "staged", actor: "test" })
    const end = yield* report("staged")
    assert.deepStrictEqual([end.round, end.state, end.rows, end.open], [2, "finished", 5, 0])
    assert.deepStrictEqual(new Set(yield* payments(requests(5))), new Set([1]))
    yield* start(wish("own", { count: 1, from: 0 }))
    yield* report("own")
    assert.include((yield* Effect.flip(runs.extend({ run: "own", definition: "file", params: {}, actor: "test" }))).message, "of the definition \"plain\"")
  }))

  it.live("sends what a canceled round left in chunks, when it is extended", () =>
    Effect.gen(function*() {
      const chunks = yield* Ref.make<ReadonlySet<number>>(new Set())
      const watched = bookWith(({ pending }) => ({
        pending: (runId, afterLine, limit, throughLine) =>
          Effect.andThen(throughLine === undefined ? Effect.void : Ref.update(chunks, (seen) => new Set([...seen, throughLine])), pending(runId, afterLine, limit, throughLine))
      }))
      yield* Effect.gen(function*() {
        const runs = yield* Runs
        const options = { ...wish("", {}).options, headroomPercent: 200 }
        yield* (yield* RunRegistry).register({ ...wish("left", { count: 35, from: 0 }), runId: "left-1", state: "waiting", options })
        yield* runs.pause("left", "ops", "a look")
        yield* tendRuns
        yield* until(view("left"), (one) => one.run.step?.startsWith("hold/") === true)
        yield* runs.cancel("left", "ops", "no more")
        yield* until(view("left"), (one) => one.run.state === "canceled")
        assert.deepStrictEqual([yield* paid(requests(40)), yield* Ref.get(chunks)], [0, new Set()])
        yield* runs.extend({ run: "left", params: { count: 40, from: 0 }, actor: "test" })
        const end = yield* report("left")
        assert.deepStrictEqual([end.state, end.rows, end.open], ["finished", 40, 0])
        assert.deepStrictEqual(new Set(yield* payments(requests(40))), new Set([1]))
        assert.deepStrictEqual(yield* Ref.get(chunks), new Set([10, 20, 30, 40]))
      }).pipe(Effect.provide(world(RunDefinitions.layer(plain), "1 day", watched)))
    }))

  it.live("repairs what it finds at the account at its end, or tells it alone; the log has a line of each, and not thousands", () =>
    Effect.gen(function*() {
      const asked = yield* Ref.make<ReadonlyArray<unknown>>([])
      const lines: Array<string> = []
      const logger = Logger.make(({ message }) => void lines.push(String(message)))
      const forgotten = (index: number, repaired: Difference["repaired"]): Difference => ({
        kind: "missing_here", chargeKey: `key${index}`, customerId: `c${index}`, item: null, revision: 0, ledger: null,
        objects: [{ id: `pi_${index}`, status: "succeeded", amountMinor: 1000, currency: "usd", createdMs: 0 }], detail: "no row has it", repaired
      })
      const reconciler = Layer.succeed(Reconciler, Reconciler.of({
        reconcile: ({ billingPeriod, dryRun, namespace, sinceMs }, onDifference) => Effect.as(Effect.andThen(
          Ref.update(asked, (all) => [...all, [billingPeriod, namespace, dryRun]]),
          Effect.forEach(Array.from({ length: dryRun ? 2 : 23 }, (_, index) => forgotten(index, index === 1 ? null : "adopted")), onDifference)
        ), {
          billingPeriod, dryRun, sinceMs, untilMs: sinceMs, accounts: [], listed: 0, ours: 0, foreign: 0, rows: 3, open: 0, found: {}, repaired: 0, remaining: dryRun ? 2 : 0
        })
      }))
      yield* Effect.gen(function*() {
        for (const [name, repair, differences] of [["repairs", true, 0], ["tells", false, 2]] as const) {
          yield* start(wish(name, { count: 3, from: 0 }, { options: { allowPeriods: ["2026-07"], headroomPercent: 200, repair } }))
          assert.strictEqual((yield* report(name)).differences, differences)
        }
        assert.deepStrictEqual(yield* Ref.get(asked), [false, true].map((dryRun) => ["2026-07", requests(1)[0]!.namespace, dryRun]))
        const told = lines.map((line) => line.replace(/^reconciliation of run \S+: /, ""))
        assert.deepStrictEqual([told.length, told[0], told[1], told[20], told[21]], [
          23,
          "missing_here (customer c0, pi_0, charge key0): no row has it; adopted",
          "missing_here (customer c1, pi_1, charge key1): no row has it; it remains",
          "3 more differences in 2026-07; purser reconcile 2026-07 lists what remains",
          "missing_here (customer c0, pi_0, charge key0): no row has it; it would be adopted, and nothing was changed"
        ])
      }).pipe(Effect.provide(world(RunDefinitions.layer(plain)).pipe(Layer.provide(reconciler), Layer.provideMerge(Logger.layer([logger])))))
    }))

  run("sends nothing while it is paused, and goes on where it was", RunDefinitions.layer(plain), Effect.gen(function*() {
    const runs = yield* Runs
    const all = requests(60)
    yield* FaultPlan.delayReply(1000, 4)
    yield* start(wish("held", { count: 60, from: 0 }))
    yield* until(paid(all), (count) => count >= 5)
    const paused = yield* runs.pause("held", "ops", "a look")
    assert.deepStrictEqual([paused.state, paused.detail], ["paused", "a look"])
    // Parked: what was sent is settled, and nobody sends any more.
    yield* until(view("held"), (one) => one.run.step?.startsWith("hold/") === true)
    const sent = yield* paid(all)
    assert.isBelow(sent, 60)
    assert.deepStrictEqual((yield* view("held")).counted.map(({ rows, state }) => [state, rows]), [["succeeded", sent], ["planned", 60 - sent]])
    yield* Effect.sleep(50)
    assert.strictEqual(yield* paid(all), sent)
    yield* runs.resume("held", "ops")
    const end = yield* report("held")
    assert.deepStrictEqual([end.state, end.open], ["finished", 0])
    assert.deepStrictEqual(new Set(yield* payments(all)), new Set([1]))
    assert.include((yield* Effect.flip(runs.pause("held", "ops", "late"))).message, "finished")
  }))

  run("that is canceled settles what was sent and starts nothing more; a new round goes on with it", RunDefinitions.layer(plain), Effect.gen(function*() {
    const runs = yield* Runs
    const all = requests(60)
    yield* FaultPlan.delayReply(1000, 4)
    yield* start(wish("dropped", { count: 60, from: 0 }))
    yield* until(paid(all), (count) => count >= 5)
    yield* runs.cancel("dropped", "ops", "wrong file")
    const end = yield* report("dropped")
    assert.strictEqual(end.state, "canceled")
    const sent = yield* paid(all)
    assert.isBelow(sent, 60)
    const states = (yield* view("dropped")).counted.map(({ rows, state }) => [state, rows])
    assert.deepStrictEqual(states, [["succeeded", sent], ["planned", 60 - sent]])
    yield* runs.extend({ run: "dropped", actor: "ops" })
    assert.strictEqual((yield* report("dropped")).state, "finished")
    assert.deepStrictEqual(new Set(yield* payments(all)), new Set([1]))
  }))

  run("whose charges nobody answers waits, and a person's word wakes it", RunDefinitions.layer(plain), Effect.gen(function*() {
    yield* FaultPlan.loseRequest(10_000)
    yield* start(wish("unheard", { count: 5, from: 0 }))
    yield* until(view("unheard"), (one) => one.run.step?.startsWith("wait/") === true)
    assert.deepStrictEqual((yield* view("unheard")).counted.map(({ rows, state }) => [state, rows]), [["planned", 5]])
    yield* (yield* Runs).cancel("unheard", "ops", "the workers are gone")
    assert.deepStrictEqual([(yield* report("unheard")).state, yield* paid(requests(5))], ["canceled", 0])
  }))

  run("ends with what is open when it has waited long enough", RunDefinitions.layer(plain), Effect.gen(function*() {
    yield* FaultPlan.loseRequest(10_000)
    yield* start(wish("given up", { count: 5, from: 0 }))
    const end = yield* report("given up")
    assert.deepStrictEqual([end.state, end.rows, end.open], ["finished", 5, 5])
    assert.strictEqual(yield* paid(requests(5)), 0)
  }), "0 seconds")

  run("that is canceled while it is paused ends at once", RunDefinitions.layer(plain), Effect.gen(function*() {
    const runs = yield* Runs
    const registry = yield* RunRegistry
    yield* registry.register({ ...wish("never", { count: 5, from: 0 }), runId: "never-1", state: "waiting", options: wish("", {}).options })
    yield* runs.pause("never", "ops", "not yet")
    yield* start(wish("never", { count: 5, from: 0 }))
    yield* until(view("never"), (one) => one.run.step?.startsWith("hold/") === true)
    yield* runs.cancel("never", "ops", "not at all")
    assert.strictEqual((yield* report("never")).state, "canceled")
    assert.strictEqual(yield* paid(requests(5)), 0)
  }))
})

const Usage = Schema.Struct({ customerId: Schema.String, units: Schema.Int })
const Priced = Schema.Struct({ customerId: Schema.String, amountMinor: Schema.Int })
const Period = Schema.Struct({ period: BillingPeriod, customers: Schema.Int })

describe("stages", () => {
  it.live("make charges of usage, are tried again with the same key, and see what was charged", () =>
    Effect.gen(function*() {
      const calls = yield* Ref.make<ReadonlyArray<readonly [stage: string, key: string, attempt: number, items: number]>>([])
      const note = (stage: string, key: string, attempt: number, items: number) => Ref.update(calls, (all) => [...all, [stage, key, attempt, items] as const])
      const ends = yield* Queue.unbounded<RunReport>()
      const quick = { retry: Schedule.recurs(3), timeout: "1 second" } as const
      const metered = RunDefinition.items("metered", {
        params: Period,
        item: Usage,
        chunkSize: 4,
        items: ({ customers }) => Stream.fromIterable(Array.from({ length: customers }, (_, n) => ({ customerId: `m${n}`, units: n + 1 })))
      }).stage("rate", {
        ...quick,
        output: Priced,
        run: (items, { attempt, idempotencyKey }) =>
          note("rate", idempotencyKey, attempt, items.length).pipe(
            Effect.andThen(attempt === 1 ? Effect.fail("the price list is away") : Effect.succeed(items.map(({ customerId, units }) => ({ customerId, amountMinor: units * 100 }))))
          )
      }).stage("tax", {
        ...quick,
        output: Priced,
        run: (items, { attempt, idempotencyKey }) =>
          Effect.as(note("tax", idempotencyKey, attempt, items.length), items.map((item) => ({ ...item, amountMinor: Math.round(item.amountMinor * 1.19) })))
      }).charge(({ amountMinor, customerId }) => chargeFor(customerId, "2026-07", { amountMinor })).after("receipt", {
        ...quick,
        run: (rows, { attempt, idempotencyKey }) => note(`receipt of ${rows.filter(({ state }) => state === "succeeded").length}`, idempotencyKey, attempt, rows.length)
      }).after("own webhook", { ...quick, run: () => Effect.fail("404") }).ended({ ...quick, run: (end) => Queue.offer(ends, end).pipe(Effect.asVoid) })

      yield* Effect.gen(function*() {
        yield* start(wish("usage", { period: "2026-07", customers: 10 }, { definition: "metered" }))
        const end = yield* report("usage")
        assert.deepStrictEqual([end.state, end.rows, end.open], ["finished", 10, 0])
        assert.deepStrictEqual(end.notes, [`stage "own webhook" failed on chunk 0: 404`])
        assert.deepStrictEqual(yield* Queue.take(ends), end)
        assert.deepStrictEqual(new Set(yield* Effect.forEach([0, 3, 9], (n) => MockGateway.payments(`m${n}`, "2026-07"))), new Set([1]))
        assert.strictEqual((yield* view("usage")).counted[0]?.amountMinor, BigInt(Math.round(5500 * 1.19)))
        const made = yield* Ref.get(calls)
        const of = (stage: string) => made.filter(([name]) => name === stage)
        // Chunks of 4, 4 and 2; the first try of each fails, and the second bears the same key.
        assert.deepStrictEqual(of("rate").map(([, , attempt]) => attempt).sort(), [1, 1, 1, 2, 2, 2])
        assert.strictEqual(new Set(of("rate").map(([, key]) => key)).size, 3)
        assert.deepStrictEqual(of("tax").map(([, , , items]) => items).sort(), [2, 4, 4])
        assert.strictEqual(new Set([...of("tax"), ...of("rate")].map(([, key]) => key)).size, 6)
        assert.deepStrictEqual(of("receipt of 10").length, 1)
        // The stash is scratch.
        const { runId } = (yield* view("usage")).run
        assert.isUndefined(yield* (yield* RunStash).get({ runId, round: 1, stage: 0 }, 0))
      }).pipe(Effect.provide(world(RunDefinitions.layer(metered))))
    }))

  it.live("that fail before the charge fail the run, and nothing is charged", () =>
    Effect.gen(function*() {
      const broken = RunDefinition.items("broken", { params: Period, item: Usage, items: () => Stream.make({ customerId: "m0", units: 1 }) })
        .stage("discount", { output: Usage, retry: Schedule.recurs(1), run: () => Effect.fail("no such campaign") })
        .charge(({ customerId }) => chargeFor(customerId, "2026-07"))
      yield* Effect.gen(function*() {
        yield* start(wish("broken", { period: "2026-07", customers: 1 }, { definition: "broken" }))
        assert.strictEqual((yield* Effect.flip(report("broken"))).message, `stage "discount" failed on chunk 0: no such campaign`)
        assert.strictEqual((yield* view("broken")).run.state, "failed")
        assert.strictEqual(yield* MockGateway.payments("m0", "2026-07"), 0)
      }).pipe(Effect.provide(world(RunDefinitions.layer(broken))))
    }))

  it.live("that throw have failed like any other: tried again, named, before the charge the end of the run, and after it a note", () =>
    Effect.gen(function*() {
      const tries = yield* Ref.make(0)
      const policy = { retry: Schedule.recurs(1) }
      const usage = () => RunDefinition.items("thrown", { params: Period, item: Usage, items: () => Stream.make({ customerId: "m0", units: 1 }) })
      const early = usage()
        .stage("discount", { ...policy, output: Usage, run: () => Effect.andThen(Ref.update(tries, (n) => n + 1), Effect.die(new Error("boom before"))) })
        .charge(({ customerId }) => chargeFor(customerId, "2026-07"))
      yield* Effect.gen(function*() {
        yield* start(wish("early", { period: "2026-07", customers: 1 }, { definition: "thrown" }))
        assert.strictEqual((yield* Effect.flip(report("early"))).message, `stage "discount" failed on chunk 0: boom before`)
        assert.deepStrictEqual([yield* Ref.get(tries), yield* MockGateway.payments("m0", "2026-07")], [2, 0])
      }).pipe(Effect.provide(world(RunDefinitions.layer(early))))
      const source = RunDefinition.rows("thrown", { params: Period, rows: () => Stream.die(new Error("boom at the source")) })
      yield* Effect.gen(function*() {
        yield* start(wish("source", { period: "2026-07", customers: 1 }, { definition: "thrown" }))
        assert.strictEqual((yield* Effect.flip(report("source"))).message, `the source of "thrown" failed: boom at the source`)
      }).pipe(Effect.provide(world(RunDefinitions.layer(source))))
      const late = usage().charge(({ customerId }) => chargeFor(customerId, "2026-07"))
        .after("receipt", { ...policy, run: () => Effect.die(new Error("boom after")) })
        .after("own webhook", { ...policy, run: (): Effect.Effect<void> => { throw new Error("not an Effect") } })
      yield* Effect.gen(function*() {
        yield* start(wish("late", { period: "2026-07", customers: 1 }, { definition: "thrown" }))
        const end = yield* report("late")
        assert.deepStrictEqual([end.state, end.notes], ["finished", [`stage "receipt" failed on chunk 0: boom after`, `stage "own webhook" failed on chunk 0: not an Effect`]])
        assert.deepStrictEqual([(yield* view("late")).run.state, yield* MockGateway.payments("m0", "2026-07")], ["finished", 1])
      }).pipe(Effect.provide(world(RunDefinitions.layer(late))))
    }))

  it.live("take what they need from where the definitions are built, and are timed", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      const slow = RunDefinition.items("slow", { params: Period, item: Usage, items: () => Stream.make({ customerId: "m0", units: 1 }) })
        .stage("rate", { output: Usage, timeout: "20 millis", retry: Schedule.recurs(0), run: (items) => Effect.as(Deferred.await(gate), items) })
        .charge(({ customerId }) => chargeFor(customerId, "2026-07"))
      yield* Effect.gen(function*() {
        yield* start(wish("slow", { period: "2026-07", customers: 1 }, { definition: "slow" }))
        assert.include((yield* Effect.flip(report("slow"))).message, "no answer within 20ms")
      }).pipe(Effect.provide(world(RunDefinitions.layer(slow))))
    }))
})
