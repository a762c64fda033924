/** Runs that runners have in work, as processes: started, held, canceled and extended by the command; taken over when a runner dies. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { atDesk, csv, type Desk, tens } from "../src/Desk.ts"

const once = { PURSER_RUNNER_PORT: "0", PURSER_RUN_PAGE: "20", PURSER_RUN_CONTROL_POLL: "50 millis" }
const startArgs = (name: string, file: string) => ["runs", "start", name, "--file", file, "--allow-period", "2026-07", "--json"]

const view = (desk: Desk, name: string) => Effect.map(desk.purser(["runs", "show", name, "--json"]), ({ json }) => json ?? {})
const until = (desk: Desk, name: string, test: (run: Record<string, unknown>) => boolean) =>
  Effect.repeat(view(desk, name), { until: test, schedule: Schedule.spaced("100 millis") })
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
        assert.deepStrictEqual([end["round"], (end["counts"] as { rows: number }).rows], [2, 50])
        yield* exactlyOnce(desk, 50)
        const listed = yield* desk.purser(["runs"], once)
        assert.include(listed.stdout, "july")
        assert.include(listed.stdout, "500.00 of 500.00 usd")
        yield* runner.kill("SIGTERM")
        assert.strictEqual((yield* runner.ended).code, 0)
      })), 90_000)
})
