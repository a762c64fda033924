/** How a run stands at the console beside its state: whether anybody is there, whether it is held, what an interrupted one came to. */
import { assert, layer } from "@effect/vitest"
import { BillingPeriod, ChargePause, chargeKeyOf, type ChargeRequest, Currency, Ledger, RunLedger, RunRegistry, SpendCap, WorkerBook } from "@purser/core"
import { ChargePipeline } from "@purser/engine"
import { DatabaseClock } from "@purser/postgres"
import { chargeFor } from "@purser/testkit"
import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { Run, RunView } from "../src/api/Shapes.ts"
import { ConsoleStores } from "../src/ConsoleStores.ts"
import { client, locked, openCap, pipeline, world } from "./support.ts"

const register = (runId: string, definition: string) =>
  Effect.flatMap(RunRegistry, (registry) => registry.register({ runId, name: runId, state: "running", definition, params: {}, options: null, actor: "ada" }))

/** A run of these rows, planned, which runners have in work. */
const planned = (runId: string, rows: number) =>
  Effect.gen(function*() {
    const ledger = yield* RunLedger
    const requests = Array.from({ length: rows }, (_, i) => chargeFor(`${runId}-${i}`, "2026-07", { amountMinor: 1000 }))
    yield* ledger.begin({ runId, source: `/files/${runId}.csv` })
    yield* register(runId, "file")
    yield* ledger.stage(runId, requests.map((request, index) => ({ line: index + 2, chargeKey: chargeKeyOf(request), request })))
    yield* ledger.plan(runId)
    return { requests }
  })

const pays = (request: ChargeRequest) => Effect.provide(Effect.flatMap(ChargePipeline, ({ charge }) => charge(request)), pipeline)

/** The run as soon as the console says so of it: what it knows of workers may be a second old. */
const shown = (runId: string, test: (run: Run) => boolean) =>
  Effect.gen(function*() {
    const api = yield* client
    const look = Effect.map(api.runs.list({ query: {} }), ({ runs }) => runs.find((run) => run.runId === runId)!)
    return yield* Effect.repeat(look, { until: (run) => test(run) })
  })

layer(world(locked), { timeout: 60_000, excludeTestServices: true })("how a run stands", (it) => {
  it.effect("a run of runners says when none is there to work on it, whatever its state; a runner's beat ends that", () =>
    Effect.gen(function*() {
      const registry = yield* RunRegistry
      const book = yield* WorkerBook
      const sql = yield* SqlClient.SqlClient
      const ledger = yield* RunLedger
      const self = { worker: "runner-1", host: "h", pid: 1, serves: "runs, 4 workers", version: "1" }
      yield* ledger.begin({ runId: "left", source: "/files/left.csv" })
      yield* register("left", "file")
      yield* registry.note("left", { runner: "runner-1" })
      yield* book.beat(self)
      yield* shown("left", ({ abandoned }) => abandoned === null)
      yield* sql`update purser.workers set beat_at = purser.now() - interval '1 minute'`
      const silent = yield* shown("left", ({ abandoned }) => abandoned !== null)
      assert.match(silent.abandoned!, /^no runner answers: runner-1 was last heard of at \S+Z; it goes on where it stood when one is started \(purser runner\)$/)
      yield* registry.change({ runId: "left", from: ["running"], to: "canceling", actor: "ada", detail: "enough" })
      const canceling = yield* shown("left", ({ state }) => state === "canceling")
      assert.match(canceling.abandoned!, /it is given up when one is started/)
      const waiting = yield* registry.register({ runId: "queued", name: "queued", state: "waiting", definition: "file", params: {}, options: null, actor: "ada" })
      assert.strictEqual((yield* shown(waiting.run.runId, () => true)).abandoned, "no runner is heard of: it waits until one is started (purser runner)")
      // Whoever else is there takes it.
      yield* book.beat({ ...self, worker: "runner-2", pid: 2 })
      yield* shown("left", ({ abandoned }) => abandoned === null)
      yield* book.leave("runner-2")
      yield* shown("left", ({ abandoned }) => abandoned !== null)
      yield* registry.change({ runId: "left", from: ["canceling"], to: "canceled", actor: "runner-3" })
      yield* shown("left", ({ abandoned }) => abandoned === null)
    }).pipe(Effect.provide(ConsoleStores.layer)))

  it.effect("a run that is held has no forecast, by its own pause or by the switch; one that goes on has", () =>
    Effect.gen(function*() {
      yield* openCap
      const api = yield* client
      const registry = yield* RunRegistry
      const pause = yield* ChargePause
      const { requests } = yield* planned("held", 3)
      const book = yield* WorkerBook
      yield* book.beat({ worker: "runner-4", host: "h", pid: 4, serves: "runs, 4 workers", version: "1" })
      yield* shown("held", ({ abandoned }) => abandoned === null)
      yield* pays(requests[0]!)
      const looks = Effect.map(api.runs.view({ params: { runId: "held" } }), ({ held, leftMs, open }) => [held, leftMs !== null, open])
      assert.deepStrictEqual(yield* looks, [false, true, 2])
      yield* registry.change({ runId: "held", from: ["running"], to: "paused", actor: "ada", detail: "a drill" })
      assert.deepStrictEqual(yield* looks, [true, false, 2])
      yield* registry.change({ runId: "held", from: ["paused"], to: "running", actor: "ada" })
      yield* pause.pause({ cause: "person", actor: "ada", reason: "an incident" })
      assert.deepStrictEqual(yield* looks, [true, false, 2])
      yield* pause.resume({ cause: "person", actor: "ada", reason: "over" })
      // What settled before is of no speed since.
      yield* Effect.repeat(looks, { until: ([held, hasForecast, open]) => held === false && hasForecast === false && open === 2 })
      yield* pays(requests[1]!)
      yield* Effect.repeat(looks, { until: ([held, hasForecast, open]) => held === false && hasForecast === true && open === 1 })
      yield* registry.change({ runId: "held", from: ["running"], to: "canceling", actor: "ada" })
      assert.deepStrictEqual(yield* looks, [false, false, 1])
      yield* book.leave("runner-4")
    }).pipe(Effect.provide(ConsoleStores.layer)))

  it.effect("a cap that a run has opened names the run, and who began it", () =>
    Effect.gen(function*() {
      yield* register("opener", "command")
      const scope = { namespace: "zmq-billing", billingPeriod: Schema.decodeSync(BillingPeriod)("2026-05"), currency: Schema.decodeSync(Currency)("eur") }
      yield* (yield* SpendCap).open({ ...scope, expectedMinor: 5000n, headroomPercent: 110, runId: "opener" })
      const { events } = yield* (yield* client).caps.list()
      assert.deepStrictEqual([events[0]?.act, events[0]?.reason, events[0]?.actor, events[0]?.capBeforeMinor], ["opened", "run opener", "ada", null])
    }))

  it.effect("an interrupted run offers the same command, until that has gone on with it", () =>
    Effect.gen(function*() {
      const registry = yield* RunRegistry
      yield* (yield* RunLedger).begin({ runId: "cut", source: "/files/cut.csv" })
      yield* register("cut", "command")
      yield* registry.change({ runId: "cut", from: ["running"], to: "interrupted", actor: "ada" })
      assert.match((yield* shown("cut", () => true)).whyNot!, /the same command goes on with it/)
      yield* registry.change({ runId: "cut", from: ["interrupted"], to: "interrupted", actor: "ada", detail: "gone on with as run next" })
      const over = yield* shown("cut", () => true)
      assert.deepStrictEqual([over.whyNot, over.detail, over.abandoned], [null, "gone on with as run next", null])
    }))

  it.effect("a row that waits for a person is not settled, and what is quarantined has a word of its own", () =>
    Effect.gen(function*() {
      yield* openCap
      const api = yield* client
      const ledger = yield* Ledger
      const { requests } = yield* planned("watched", 2)
      yield* pays(requests[0]!)
      const claim = yield* ledger.claim(requests[1]!, "w1")
      if (claim._tag !== "Claimed") return yield* Effect.die(claim)
      yield* ledger.quarantine(claim.charge.lease, "look")
      const view = yield* api.runs.view({ params: { runId: "watched" } })
      assert.deepStrictEqual([view.open, view.forPerson, view.leftMs], [0, 1, null])
      assert.deepStrictEqual([...new Set(view.groups.map(({ rows, state }) => `${state} ${rows}`))].toSorted(), ["quarantined 1", "succeeded 1"])
    }))

  it.effect("a run that is sent from has no forecast and says so where no worker is there for its rows; whoever might serve ends that", () =>
    Effect.gen(function*() {
      yield* openCap
      const api = yield* client
      const registry = yield* RunRegistry
      const book = yield* WorkerBook
      const runner = { worker: "sender-1", host: "h", pid: 1, serves: "runs, 0 workers", version: "1" }
      const worker = { worker: "server-1", host: "h", pid: 2, serves: "requests on tcp://127.0.0.1:5555", version: "1" }
      const { requests } = yield* planned("sent", 2)
      yield* registry.note("sent", { runner: "sender-1" })
      yield* book.beat(runner)
      yield* book.beat(worker)
      yield* pays(requests[0]!)
      const until = (test: (text: string | null) => boolean) =>
        Effect.repeat(Effect.map(api.runs.view({ params: { runId: "sent" } }), ({ leftMs, run }) => ({ text: run.abandoned, leftMs })), { until: ({ text }) => test(text) })
      assert.isNumber((yield* until((text) => text === null)).leftMs)
      // The worker is gone, and nothing of the run has moved for a while.
      yield* DatabaseClock.advance("25 seconds")
      yield* book.beat(runner)
      const gone = yield* until((text) => text !== null)
      assert.match(gone.text!, /^no worker answers: server-1 was last heard of at \S+Z; what is left is sent when one is started \(purser worker\)$/)
      assert.isNull(gone.leftMs)
      yield* book.beat({ ...runner, serves: "runs, 2 workers" })
      assert.isNumber((yield* until((text) => text === null)).leftMs)
      yield* book.beat(runner)
      yield* until((text) => text !== null)
      yield* book.beat(worker)
      yield* until((text) => text === null)
      for (const { worker } of [runner, { worker: "server-1" }]) yield* book.leave(worker)
    }).pipe(Effect.provide(ConsoleStores.layer)))

  it.effect("a run's rate is of the time in which it could settle anything: since it began, or since it went on", () =>
    Effect.gen(function*() {
      yield* openCap
      const api = yield* client
      const registry = yield* RunRegistry
      const book = yield* WorkerBook
      const { requests } = yield* planned("quick", 20)
      // Planned long ago, begun ten seconds ago: ten rows in ten seconds.
      yield* DatabaseClock.advance("1 hour")
      const fromMs = Date.now()
      for (const request of requests.slice(0, 10)) yield* pays(request)
      yield* DatabaseClock.advance("10 seconds")
      yield* book.beat({ worker: "runner-5", host: "h", pid: 5, serves: "runs, 4 workers", version: "1" })
      yield* shown("quick", ({ abandoned }) => abandoned === null)
      const rate = (test: (perSecond: number) => boolean) => Effect.repeat(api.runs.view({ params: { runId: "quick" } }), { until: ({ settledPerSecond }) => test(settledPerSecond) })
      const settled = ({ groups }: RunView) => groups.reduce((sum, { settledLastMinute }) => sum + settledLastMinute, 0)
      const view = yield* rate((now) => now > 0)
      assert.isTrue(view.settledWithinMs >= 10_000 && view.settledWithinMs <= 10_000 + Date.now() - fromMs, String(view.settledWithinMs))
      assert.deepStrictEqual([settled(view), view.open], [10, 10])
      assert.closeTo(view.settledPerSecond, 10_000 / view.settledWithinMs, 0.001)
      assert.closeTo(view.leftMs ?? 0, view.settledWithinMs, 1)
      // What settled before a pause is of no speed since.
      yield* registry.change({ runId: "quick", from: ["running"], to: "paused", actor: "ada" })
      yield* registry.change({ runId: "quick", from: ["paused"], to: "running", actor: "ada" })
      yield* rate((now) => now === 0)
      yield* pays(requests[10]!)
      assert.strictEqual(settled(yield* rate((now) => now > 0)), 1)
      yield* book.leave("runner-5")
    }).pipe(Effect.provide(ConsoleStores.layer)))

  it.effect("runs beyond the first page are reached, and those that are not over stand on it however old they are", () =>
    Effect.gen(function*() {
      const api = yield* client
      const registry = yield* RunRegistry
      const ledger = yield* RunLedger
      const sql = yield* SqlClient.SqlClient
      for (let i = 0; i < 6; i++) {
        const runId = `page-${i}`
        yield* ledger.begin({ runId, source: `/files/${runId}.csv` })
        yield* register(runId, "file")
        yield* sql`update purser.runs set begun_at = '2020-01-01'::timestamptz + ${i} * interval '1 day' where run_id = ${runId}`
        if (i !== 1) yield* registry.change({ runId, from: ["running"], to: i === 2 ? "interrupted" : "finished", actor: "ada" })
      }
      yield* registry.change({ runId: "page-2", from: ["interrupted"], to: "interrupted", actor: "ada", detail: "gone on with as run next" })
      const first = yield* api.runs.list({ query: { limit: 3 } })
      const ours = (runs: ReadonlyArray<Run>) => runs.filter(({ runId }) => runId.startsWith("page-")).map(({ runId, state }) => [runId, state])
      assert.deepStrictEqual(ours(first.runs), [["page-1", "running"]])
      assert.deepStrictEqual(first.runs.map(({ begunAtMs }) => begunAtMs), first.runs.map(({ begunAtMs }) => begunAtMs).toSorted((a, b) => b - a))
      const seen: Array<Run> = []
      let next = first.next
      while (next !== null) {
        const page: typeof first = yield* api.runs.list({ query: { limit: 3, before: next } })
        seen.push(...page.runs)
        next = page.next
      }
      assert.deepStrictEqual(ours(seen), [["page-5", "finished"], ["page-4", "finished"], ["page-3", "finished"], ["page-2", "interrupted"], ["page-1", "running"], ["page-0", "finished"]])
      assert.strictEqual(new Set(seen.map(({ runId }) => runId)).size, seen.length)
    }))
})
