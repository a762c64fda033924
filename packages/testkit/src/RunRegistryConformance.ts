/** What every register of runs, stash and list of schedules keeps to. Each test has runs of its own. */
import { Currency, goneOnWith, type NewRun, RunRegistry, runStandings, type RunSchedule, RunSchedules, RunStash } from "@purser/core"
import { assert, layer as testLayer } from "@effect/vitest"
import { Effect, type Layer, Schema } from "effect"

const runOf = (name: string, state: NewRun["state"] = "waiting"): NewRun => ({
  runId: `id of ${name}`, name, state, definition: "file", params: { path: "/in.csv", list: [1, null] }, options: { concurrency: 8 }, actor: "ada"
})

/** Runs the suite; the layer is built once. */
export const suite = <E>(name: string, layer: Layer.Layer<RunRegistry | RunStash | RunSchedules, E>): void =>
  testLayer(layer, { timeout: 120_000 })(`RunRegistry: ${name}`, (it) => {
    it.effect("gives a name to the first of two triggers", () =>
      Effect.gen(function*() {
        const runs = yield* RunRegistry
        const wishes = Array.from({ length: 8 }, (_, index) => ({ ...runOf("twice"), runId: `trigger ${index}` }))
        const answers = yield* Effect.forEach(wishes, (wish) => runs.register(wish), { concurrency: "unbounded" })
        assert.strictEqual(answers.filter(({ isNew }) => isNew).length, 1)
        assert.strictEqual(new Set(answers.map(({ run }) => run.runId)).size, 1)
        const [{ run }] = answers as [typeof answers[number]]
        assert.deepStrictEqual(
          [run.name, run.state, run.params, run.options, run.round, run.pauses, run.counted, run.startedAtMs],
          ["twice", "waiting", { path: "/in.csv", list: [1, null] }, { concurrency: 8 }, 1, 0, [], null]
        )
      }))

    it.effect("finds by name and by id, and lists the newest first", () =>
      Effect.gen(function*() {
        const runs = yield* RunRegistry
        yield* runs.register(runOf("list-a"))
        yield* runs.register(runOf("list-b", "running"))
        assert.strictEqual((yield* runs.find("list-a"))?.runId, "id of list-a")
        assert.strictEqual((yield* runs.find("id of list-b"))?.name, "list-b")
        assert.isNotNull((yield* runs.find("list-b"))?.startedAtMs)
        assert.isUndefined(yield* runs.find("nobody"))
        const names = (yield* runs.list({ limit: 100 })).map((run) => run.name).filter((one) => one.startsWith("list-"))
        assert.deepStrictEqual(names, ["list-b", "list-a"])
        assert.deepStrictEqual((yield* runs.list({ states: ["running"], limit: 100 })).filter((run) => run.name.startsWith("list-")).map((run) => run.name), ["list-b"])
        assert.strictEqual((yield* runs.list({ limit: 1 })).length, 1)
      }))

    it.effect("changes a state only from one that is expected, and keeps the trail", () =>
      Effect.gen(function*() {
        const runs = yield* RunRegistry
        const { run: { runId } } = yield* runs.register(runOf("states"))
        assert.isUndefined(yield* runs.change({ runId, from: ["running"], to: "paused", actor: "bob" }))
        yield* runs.change({ runId, from: ["waiting", "planned"], to: "running", actor: "runner-1" })
        const paused = yield* runs.change({ runId, from: ["running"], to: "paused", actor: "bob", detail: "looks odd" })
        assert.deepStrictEqual([paused?.state, paused?.pauses, paused?.detail], ["paused", 1, "looks odd"])
        const again = yield* runs.change({ runId, from: ["paused"], to: "running", actor: "bob" })
        assert.deepStrictEqual([again?.detail, again?.endedAtMs], ["looks odd", null])
        const over = yield* runs.change({ runId, from: ["running"], to: "finished", actor: "runner-1", detail: null })
        assert.deepStrictEqual([over?.state, over?.detail, over?.endedAtMs === null], ["finished", null, false])
        assert.deepStrictEqual((yield* runs.events(runId)).map(({ act, actor, detail }) => [act, actor, detail]), [
          ["waiting", "ada", null], ["running", "runner-1", null], ["paused", "bob", "looks odd"], ["running", "bob", null], ["finished", "runner-1", null]
        ])
      }))

    it.effect("what was read stays as it was read", () =>
      Effect.gen(function*() {
        const runs = yield* RunRegistry
        const { run } = yield* runs.register(runOf("read"))
        const read = [run, (yield* runs.find("read"))!, (yield* runs.list({ limit: 100 })).find(({ name }) => name === "read")!]
        yield* runs.change({ runId: run.runId, from: ["waiting"], to: "running", actor: "runner-1" })
        yield* runs.note(run.runId, { runner: "runner-1", step: "charge" })
        assert.deepStrictEqual(read.map(({ runner, state, step }) => [state, runner, step]), Array.from({ length: 3 }, () => ["waiting", null, null]))
      }))

    it.effect("counts how runs stand: those that are not over, and those that ended so that somebody should know", () =>
      Effect.gen(function*() {
        const runs = yield* RunRegistry
        const before = yield* runs.standings
        const grown = Effect.map(runs.standings, (now) =>
          Object.fromEntries(runStandings.map((standing) => [standing, (now[standing] ?? 0) - (before[standing] ?? 0)]).filter(([, by]) => by !== 0)))
        // No book names a runner here.
        yield* runs.register(runOf("standing"))
        assert.deepStrictEqual(yield* grown, { abandoned: 1 })
        const ended = (name: string, to: "interrupted" | "failed" | "finished" | "canceled", detail: string | null = null) =>
          Effect.andThen(runs.register(runOf(name, "running")), runs.change({ runId: `id of ${name}`, from: ["running"], to, actor: "r", detail }))
        for (const to of ["interrupted", "failed", "finished", "canceled"] as const) yield* ended(`standing-${to}`, to)
        assert.deepStrictEqual(yield* grown, { abandoned: 1, interrupted: 1, failed: 1 })
        yield* ended("standing-gone-on", "interrupted", `${goneOnWith}another`)
        assert.deepStrictEqual(yield* grown, { abandoned: 1, interrupted: 1, failed: 1 })
      }))

    it.effect("opens a further round of a run that is over, one for two who ask at once", () =>
      Effect.gen(function*() {
        const runs = yield* RunRegistry
        const { run: { runId } } = yield* runs.register(runOf("rounds", "running"))
        assert.isUndefined(yield* runs.extend({ runId, params: null, actor: "ada" }))
        yield* runs.change({ runId, from: ["running"], to: "finished", actor: "r" })
        const answers = yield* Effect.forEach([1, 2], (n) => runs.extend({ runId, params: { n }, actor: "ada" }), { concurrency: "unbounded" })
        const [round] = answers.filter((one) => one !== undefined)
        assert.strictEqual(answers.filter((one) => one !== undefined).length, 1)
        assert.deepStrictEqual([round?.state, round?.round, round?.endedAtMs], ["waiting", 2, null])
      }))

    it.effect("keeps what a runner tells, and an event of another runner", () =>
      Effect.gen(function*() {
        const runs = yield* RunRegistry
        const { run: { runId } } = yield* runs.register(runOf("notes", "running"))
        const counted = [{ currency: Schema.decodeSync(Currency)("usd"), state: "succeeded" as const, rows: 3, amountMinor: 10n ** 15n, receivedMinor: 7n, settledBefore: 1 }]
        yield* runs.note(runId, { runner: "r1", step: "plan", counted })
        yield* runs.note(runId, { runner: "r1", step: "dispatch" })
        yield* runs.note(runId, { runner: "r2" })
        const found = yield* runs.find(runId)
        assert.deepStrictEqual([found?.runner, found?.step, found?.counted], ["r2", "dispatch", counted])
        assert.deepStrictEqual((yield* runs.events(runId)).filter(({ act }) => act === "taken").map(({ actor }) => actor), ["r1", "r2"])
      }))

    it.effect("keeps chunks by their place until they are cut or dropped", () =>
      Effect.gen(function*() {
        const stash = yield* RunStash
        const place = { runId: "stash", round: 1, stage: 2 }
        for (const chunk of [0, 1, 2]) yield* stash.put(place, chunk, JSON.stringify([chunk, "é\u0000"]))
        yield* stash.put(place, 1, "[]")
        yield* stash.put({ ...place, stage: 3 }, 0, "[3]")
        assert.strictEqual(yield* stash.get(place, 1), "[]")
        assert.deepStrictEqual(JSON.parse((yield* stash.get(place, 2))!), [2, "é\u0000"])
        yield* stash.cut(place, 1)
        assert.deepStrictEqual([yield* stash.get(place, 1), yield* stash.get({ ...place, stage: 3 }, 0)], [undefined, "[3]"])
        yield* stash.drop("stash")
        assert.isUndefined(yield* stash.get({ ...place, stage: 3 }, 0))
      }))

    it.effect("keeps schedules by name", () =>
      Effect.gen(function*() {
        const schedules = yield* RunSchedules
        const monthly: RunSchedule = { name: "monthly", cron: "0 6 1 * *", zone: "Europe/Berlin", definition: "query", params: { sql: "select 1" }, options: {}, actor: "ada" }
        yield* schedules.put(monthly)
        yield* schedules.put({ ...monthly, name: "daily" })
        yield* schedules.put({ ...monthly, cron: "0 7 1 * *" })
        assert.deepStrictEqual((yield* schedules.list).map(({ cron, name }) => [name, cron]), [["daily", "0 6 1 * *"], ["monthly", "0 7 1 * *"]])
        assert.deepStrictEqual([yield* schedules.remove("daily"), yield* schedules.remove("daily")], [true, false])
      }))
  })
