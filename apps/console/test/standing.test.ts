/** How a run stands at the console beside its state: whether anybody is there, whether it is held, what an interrupted one came to. */
import { assert, layer } from "@effect/vitest"
import { BillingPeriod, ChargePause, chargeKeyOf, Currency, RunLedger, RunRegistry, SpendCap, WorkerBook } from "@purser/core"
import { ChargePipeline } from "@purser/engine"
import { chargeFor } from "@purser/testkit"
import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { Run } from "../src/api/Shapes.ts"
import { ConsoleStores } from "../src/ConsoleStores.ts"
import { client, locked, openCap, pipeline, world } from "./support.ts"

const register = (runId: string, definition: string) =>
  Effect.flatMap(RunRegistry, (registry) => registry.register({ runId, name: runId, state: "running", definition, params: {}, options: null, actor: "ada" }))

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
      const ledger = yield* RunLedger
      const pause = yield* ChargePause
      const requests = Array.from({ length: 3 }, (_, i) => chargeFor(`held${i}`, "2026-07", { amountMinor: 1000 }))
      yield* ledger.begin({ runId: "held", source: "/files/held.csv" })
      yield* register("held", "file")
      yield* ledger.stage("held", requests.map((request, index) => ({ line: index + 2, chargeKey: chargeKeyOf(request), request })))
      yield* ledger.plan("held")
      yield* Effect.provide(Effect.flatMap(ChargePipeline, ({ charge }) => charge(requests[0]!)), pipeline)
      const looks = Effect.map(api.runs.view({ params: { runId: "held" } }), ({ held, leftMs, open }) => [held, leftMs !== null, open])
      assert.deepStrictEqual(yield* looks, [false, true, 2])
      yield* registry.change({ runId: "held", from: ["running"], to: "paused", actor: "ada", detail: "a drill" })
      assert.deepStrictEqual(yield* looks, [true, false, 2])
      yield* registry.change({ runId: "held", from: ["paused"], to: "running", actor: "ada" })
      yield* pause.pause({ cause: "person", actor: "ada", reason: "an incident" })
      assert.deepStrictEqual(yield* looks, [true, false, 2])
      yield* pause.resume({ cause: "person", actor: "ada", reason: "over" })
      assert.deepStrictEqual(yield* looks, [false, true, 2])
      yield* registry.change({ runId: "held", from: ["running"], to: "canceling", actor: "ada" })
      assert.deepStrictEqual(yield* looks, [false, false, 2])
    }))

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
})
