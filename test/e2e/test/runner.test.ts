/** Runs that runners have in work, as processes: started, held, canceled and extended by the command; taken over when a runner dies. */
import { assert, describe, it } from "@effect/vitest"
import { type RunEvent, type RunRecord, RunRegistry } from "@purser/core"
import { Database, PgRunLedger, PgRunRegistry } from "@purser/postgres"
import { Clock, Context, Effect, Layer, Redacted, Schedule } from "effect"
import { atDesk, csv, type Desk, paidAtLeast, tens } from "../src/Desk.ts"

const once = { PURSER_RUNNER_PORT: "0", PURSER_RUN_PAGE: "20", PURSER_RUN_CONTROL_POLL: "50 millis" }
const startArgs = (name: string, file: string) => ["runs", "start", name, "--file", file, "--allow-period", "2026-07", "--json"]

/** The register as another program sees it: a look is a statement, not a process. */
const books = (desk: Desk) =>
  Layer.build(Layer.mergeAll(PgRunRegistry.layer, PgRunLedger.layer).pipe(
    Layer.provide(Layer.fresh(Database.layerUrl(Redacted.make(desk.env["PURSER_DATABASE_URL"]!), { maxConnections: 2 })))
  ))
const until = (desk: Desk, name: string, test: (run: RunRecord) => boolean) =>
  Effect.gen(function*() {
    const { find } = Context.get(yield* books(desk), RunRegistry)
    const found = yield* Effect.repeat(find(name), { until: (run) => run !== undefined && test(run), schedule: Schedule.spaced("50 millis") })
    return found!
  }).pipe(Effect.scoped)
/** When the run was taken by one of these for the first time. */
const takenBy = (desk: Desk, name: string, runners: ReadonlySet<string>) =>
  Effect.gen(function*() {
    const { events, find } = Context.get(yield* books(desk), RunRegistry)
    const { runId } = (yield* find(name))!
    const isIt = ({ act, actor }: RunEvent) => act === "taken" && runners.has(actor)
    const all = yield* Effect.repeat(events(runId), { until: (list) => list.some(isIt), schedule: Schedule.spaced("50 millis") })
    return all.find(isIt)!
  }).pipe(Effect.scoped)
const exactlyOnce = (desk: Desk, rows: number) =>
  Effect.map(desk.sim.books, (books) => {
    assert.strictEqual(books.length, rows)
    assert.deepStrictEqual(new Set(books.map(({ payments }) => payments)), new Set([1]))
  })

describe("a runner", () => {
  it.live("runs what the command handed over, once, and takes late rows", () =>
    atDesk((desk) =>
      Effect.gen(function*() {
        const file = desk.write("july.csv", csv(...tens(45)))
        const runner = yield* desk.start(["runner"], once)
        yield* runner.says("workers")
        const started = yield* desk.purser([...startArgs("july", file), "--headroom", "2.00", "--watch"], once)
        assert.deepStrictEqual([started.code, started.json?.["state"], started.json?.["name"]], [0, "finished", "july"])
        yield* exactlyOnce(desk, 45)
        const again = yield* desk.purser(startArgs("july", file), once)
        assert.deepStrictEqual([again.code, again.json?.["isNew"], again.json?.["state"]], [0, false, "finished"])
        desk.write("july.csv", csv(...tens(50)))
        const extended = yield* desk.purser(["runs", "extend", "july"], once)
        assert.strictEqual(extended.code, 0, extended.stderr)
        const end = yield* until(desk, "july", ({ state }) => state === "finished")
        assert.deepStrictEqual([end.round, end.counted.map(({ rows, state }) => [state, rows])], [2, [["succeeded", 50]]])
        yield* exactlyOnce(desk, 50)
        const listed = yield* desk.purser(["runs"], once)
        assert.include(listed.stdout, "july")
        assert.include(listed.stdout, "500.00 of 500.00 usd")
        yield* runner.kill("SIGTERM")
        assert.strictEqual((yield* runner.ended).code, 0)
      })), 90_000)
})

/** Each of three runners is told its own name. */
const three = (desk: Desk) =>
  Effect.forEach(["a", "b", "c"], (name) =>
    Effect.tap(desk.start(["runner"], { ...once, PURSER_WORKER: name, PURSER_SWEEP_INTERVAL: "1 second" }), (runner) => runner.says("workers")).pipe(
      Effect.map((runner) => ({ ...runner, name }))), { concurrency: 3 })
describe("three runners", () => {
  const isLong = process.env["PURSER_TEST_LONG"] !== undefined
  const rows = isLong ? 5000 : 160

  it.live("finish a run exactly once when one that has it is frozen, the next is killed, and the first wakes up beside the third", () =>
    atDesk((desk) =>
      Effect.gen(function*() {
        const file = desk.write("july.csv", csv(...tens(rows)))
        const runners = yield* three(desk)
        const named = (wanted: string) => runners.find(({ name }) => name === wanted)!
        const without = (...gone: ReadonlyArray<string>) => new Set(runners.map(({ name }) => name).filter((name) => !gone.includes(name)))
        yield* desk.purser([...startArgs("july", file), "--concurrency", isLong ? "64" : "4"], once)
        yield* paidAtLeast(desk.sim, rows / 10)

        const first = (yield* until(desk, "july", ({ runner }) => runner !== null)).runner!
        yield* named(first).kill("SIGSTOP")
        const frozenMs = yield* Clock.currentTimeMillis
        const second = yield* takenBy(desk, "july", without(first))
        assert.isBelow(second.atMs - frozenMs, 10_000)

        yield* paidAtLeast(desk.sim, rows / 4)
        yield* named(second.actor).kill("SIGKILL")
        const killedMs = yield* Clock.currentTimeMillis
        const third = yield* takenBy(desk, "july", without(first, second.actor))
        assert.isBelow(third.atMs - killedMs, 10_000)

        yield* named(first).kill("SIGCONT")
        const end = yield* until(desk, "july", ({ state }) => state === "finished")
        assert.deepStrictEqual([end.counted.map(({ rows, state }) => [state, rows]), end.detail], [[["succeeded", rows]], null])
        yield* exactlyOnce(desk, rows)
      })), 240_000)
})
