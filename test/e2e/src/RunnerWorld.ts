/** Runners as processes at a desk, and how a test sees what they have in work: by the register and by the books. */
import { assert } from "@effect/vitest"
import { type RunRecord, RunRegistry } from "@purser/core"
import { Database, PgRunLedger, PgRunRegistry } from "@purser/postgres"
import { Clock, Context, Effect, Layer, Redacted, Schedule } from "effect"
import { csv, type Desk, paidAtLeast, tens } from "./Desk.ts"

/** A page small enough for a short run to have chunks, and a hold that is noticed soon; what governs take-over is as shipped. */
export const once = { PURSER_RUNNER_PORT: "0", PURSER_RUN_PAGE: "20", PURSER_RUN_CONTROL_POLL: "50 millis" }
/** Arguments that hand a file over. */
export const startArgs = (name: string, file: string) => ["runs", "start", name, "--file", file, "--allow-period", "2026-07", "--json"]

/** The register as another program sees it: a look is a statement, not a process. */
export const books = (desk: Desk) =>
  Layer.build(Layer.mergeAll(PgRunRegistry.layer, PgRunLedger.layer).pipe(
    Layer.provide(Layer.fresh(Database.layerUrl(Redacted.make(desk.env["PURSER_DATABASE_URL"]!), { maxConnections: 2 })))
  ))
/** Waits until the register says so of a run. */
export const until = (desk: Desk, name: string, test: (run: RunRecord) => boolean) =>
  Effect.gen(function*() {
    const { find } = Context.get(yield* books(desk), RunRegistry)
    const found = yield* Effect.repeat(find(name), { until: (run) => run !== undefined && test(run), schedule: Schedule.spaced("50 millis") })
    return found!
  }).pipe(Effect.scoped)
/** Waits until one of these has the run, and tells since when. Runs move when runners join too: whoever took it last has it. */
export const takenBy = (desk: Desk, name: string, runners: ReadonlySet<string>) =>
  Effect.gen(function*() {
    const { events, find } = Context.get(yield* books(desk), RunRegistry)
    const { runId } = (yield* find(name))!
    const last = Effect.map(events(runId), (all) => all.findLast(({ act }) => act === "taken"))
    return (yield* Effect.repeat(last, { until: (event) => event !== undefined && runners.has(event.actor), schedule: Schedule.spaced("50 millis") }))!
  }).pipe(Effect.scoped)
/** So many rows were paid, each once, by the simulator's books. */
export const exactlyOnce = (desk: Desk, rows: number) =>
  Effect.map(desk.sim.books, (books) => {
    assert.strictEqual(books.length, rows)
    assert.deepStrictEqual(new Set(books.map(({ payments }) => payments)), new Set([1]))
  })

/** Each of three runners is told its own name. */
const three = (desk: Desk) =>
  Effect.forEach(["a", "b", "c"], (name) =>
    Effect.tap(desk.start(["runner"], { ...once, PURSER_WORKER: name, PURSER_SWEEP_INTERVAL: "1 second" }), (runner) => runner.says("workers")).pipe(
      Effect.map((runner) => ({ ...runner, name }))), { concurrency: 3 })

/** A signal that takes a runner away: for good, or until it is told to go on. */
export type Blow = "SIGKILL" | "SIGSTOP"

/** Within this a run is at another runner, at the shipped settings. */
const takeOverMs = 10_000

/**
 * Three runners; the one that has the run is struck, then the one that took it over, and whoever was only frozen wakes up beside the
 * third. The run finishes, and everybody has paid once.
 */
export const takeOvers = Effect.fnUntraced(function*(desk: Desk, { concurrency, first, rows, second }: {
  readonly rows: number
  readonly concurrency: number
  readonly first: Blow
  readonly second: Blow
}) {
  const file = desk.write("july.csv", csv(...tens(rows)))
  const runners = yield* three(desk)
  const strike = (wanted: string, signal: NodeJS.Signals) => runners.find(({ name }) => name === wanted)!.kill(signal)
  const without = (...gone: ReadonlyArray<string>) => new Set(runners.map(({ name }) => name).filter((name) => !gone.includes(name)))
  yield* desk.purser([...startArgs("july", file), "--concurrency", String(concurrency)], once)
  yield* paidAtLeast(desk.sim, rows / 10)

  const owner = (yield* takenBy(desk, "july", without())).actor
  yield* strike(owner, first)
  const firstMs = yield* Clock.currentTimeMillis
  const heir = yield* takenBy(desk, "july", without(owner))
  yield* Effect.logInfo(`${first}: another runner had the run after ${Math.round(heir.atMs - firstMs)} ms`)
  assert.isBelow(heir.atMs - firstMs, takeOverMs)

  yield* paidAtLeast(desk.sim, rows / 4)
  yield* strike(heir.actor, second)
  const secondMs = yield* Clock.currentTimeMillis
  const last = yield* takenBy(desk, "july", without(owner, heir.actor))
  yield* Effect.logInfo(`${second}: another runner had the run after ${Math.round(last.atMs - secondMs)} ms`)
  assert.isBelow(last.atMs - secondMs, takeOverMs)

  if (first === "SIGSTOP") yield* strike(owner, "SIGCONT")
  if (second === "SIGSTOP") yield* strike(heir.actor, "SIGCONT")
  const end = yield* until(desk, "july", ({ state }) => state === "finished")
  assert.deepStrictEqual([end.counted.map(({ rows, state }) => [state, rows]), end.detail], [[["succeeded", rows]], null])
  yield* exactlyOnce(desk, rows)
})
