/** Runs that runners have in work, as processes: started, held, canceled and extended by the command; taken over when a runner dies. */
import { assert, describe, it } from "@effect/vitest"
import { RunRegistry } from "@purser/core"
import { Clock, Context, Effect, Schedule } from "effect"
import { atDesk, csv, paidAtLeast, tens } from "../src/Desk.ts"
import { books, exactlyOnce, once, startArgs, takeOvers, until } from "../src/RunnerWorld.ts"

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
        // A run of a command is in the list too; one that is over is over.
        assert.strictEqual((yield* desk.purser(["run", file], once)).code, 0)
        const own = yield* Context.get(yield* books(desk), RunRegistry).list({ limit: 1 })
        assert.deepStrictEqual([own[0]?.definition, own[0]?.state, own[0]?.counted.map(({ rows }) => rows)], ["command", "finished", [50]])
        const refused = yield* desk.purser(["runs", "cancel", own[0]!.runId, "--reason", "mine"], once)
        assert.strictEqual(refused.code, 1)
        assert.include(refused.stderr, "is finished: it cannot be canceled")
        yield* runner.kill("SIGTERM")
        assert.strictEqual((yield* runner.ended).code, 0)
      })), 90_000)

  it.live("takes a file that was planned elsewhere, holds it, goes on, and drops another; what was never sent is prunable last", () =>
    atDesk((desk) =>
      Effect.gen(function*() {
        yield* desk.sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", times: "always" }, action: { kind: "delay", at: "during", delayMs: 40 } })
        const first = desk.write("first.csv", csv(...tens(60)))
        const second = desk.write("second.csv", csv(...tens(60).map((row) => row.replace(/^c/, "d"))))
        const detached = yield* desk.purser(["run", first, "--detach", "--concurrency", "2", "--expected-total", "2000.00", "--json"], once)
        assert.deepStrictEqual([detached.code, detached.json?.["rows"], detached.json?.["isNew"]], [0, 60, true], detached.stderr)
        assert.strictEqual((yield* desk.sim.books).length, 0)
        const again = yield* desk.purser(["run", first, "--detach", "--json"], once)
        assert.deepStrictEqual([again.code, again.json?.["isNew"]], [0, false])
        const more = desk.write("more.csv", csv(...tens(61)))
        const extend = () => desk.purser(["run", more, "--detach", "--name", "first.csv", "--json"], once)
        const early = yield* extend()
        assert.deepStrictEqual([early.code, /1 of these rows is late for run first.csv .*which is planned/.test(early.stderr)], [1, true], early.stderr)

        const runner = yield* desk.start(["runner", "--transport", "memory"], once)
        yield* paidAtLeast(desk.sim, 3)
        const paused = yield* desk.purser(["runs", "pause", "first.csv", "--reason", "a look"], once)
        assert.include(paused.stdout, "is paused", paused.stderr)
        yield* until(desk, "first.csv", ({ step }) => step?.startsWith("hold/") === true)
        const held = (yield* desk.sim.books).length
        assert.isBelow(held, 60)
        assert.include((yield* desk.purser(["runs", "resume", "first.csv"], once)).stdout, "is running")
        const end = yield* desk.purser(["runs", "watch", "first.csv", "--json"], once)
        assert.deepStrictEqual([end.code, end.json?.["state"]], [0, "finished"], end.stderr)
        yield* exactlyOnce(desk, 60)
        const unread = yield* desk.purser(["runs", "extend", "first.csv", "--file", more], once)
        assert.deepStrictEqual([unread.code, unread.stderr.includes("purser run FILE --detach --name first.csv")], [1, true], unread.stderr)
        const piped = yield* desk.purser(["run", "-", "--detach", "--name", "first.csv", "--json"], once, csv(...tens(61)))
        assert.deepStrictEqual([piped.code, /1 of these rows is late .*read a second time to be planned, which standard input cannot be/.test(piped.stderr)], [1, true], piped.stderr)
        const late = yield* extend()
        assert.deepStrictEqual([late.code, late.json?.["late"], late.json?.["round"]], [0, 1, 2], late.stderr)
        yield* until(desk, "first.csv", ({ round, state }) => round === 2 && state === "finished")
        yield* exactlyOnce(desk, 61)

        const other = yield* desk.purser(["run", second, "--detach", "--name", "second", "--concurrency", "2"], once)
        assert.strictEqual(other.code, 0, other.stderr)
        yield* paidAtLeast(desk.sim, 64)
        assert.strictEqual((yield* desk.purser(["runs", "cancel", "second", "--reason", "wrong month"], once)).code, 0)
        const dropped = yield* until(desk, "second", ({ state }) => state === "canceled")
        const sent = (yield* desk.sim.books).length - 61
        assert.deepStrictEqual(dropped.counted.map(({ rows, state }) => [state, rows]), [["planned", 60 - sent], ["succeeded", sent]])

        const pruned = yield* desk.purser(["prune", "--engine-after", "0 seconds", "--runs-after", "0 seconds", "--apply", "--json"], once)
        assert.deepStrictEqual([pruned.json?.["executions"], pruned.json?.["runs"], pruned.json?.["runRows"]], [3, 1, 61], pruned.stderr)
        assert.strictEqual((yield* until(desk, "second", () => true)).state, "canceled")
        yield* runner.kill("SIGTERM")
        assert.strictEqual((yield* runner.ended).code, 0)
      })), 120_000)

  it.live("starts a run by the clock, one for each firing, and refuses a schedule that it could not keep", () =>
    atDesk((desk) =>
      Effect.gen(function*() {
        desk.write("invoices-2026.csv", csv(...tens(5)))
        const put = (...more: ReadonlyArray<string>) =>
          desk.purser(["schedule", "put", "often", "--file", desk.pathOf("invoices-{yyyy}.csv"), "--allow-period", "2026-07", ...more], once)
        assert.include((yield* put("--cron", "61 * * * *")).stderr, "often")
        assert.include((yield* put("--cron", "* * * * *", "--zone", "Europe/Atlantis")).stderr, "Atlantis")
        const year = new Date(yield* Clock.currentTimeMillis).getUTCFullYear()
        desk.write(`invoices-${year}.csv`, csv(...tens(5)))
        const said = yield* put("--cron", "* * * * * *", "--zone", "Asia/Tokyo")
        assert.include(said.stdout, "UTC", said.stderr)
        const runner = yield* desk.start(["runner", "--transport", "memory"], { ...once, PURSER_SCHEDULE_POLL: "100 millis" })
        yield* paidAtLeast(desk.sim, 5)
        const { list } = Context.get(yield* books(desk), RunRegistry)
        const runs = yield* Effect.repeat(list({ limit: 100 }), { until: (all) => all.length >= 2, schedule: Schedule.spaced("50 millis") })
        assert.strictEqual(new Set(runs.map(({ name }) => name)).size, runs.length)
        assert.match(runs[0]!.name, /^often\/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/)
        assert.include((yield* desk.purser(["schedule", "remove", "often"], once)).stdout, "removed")
        yield* exactlyOnce(desk, 5)
        yield* runner.kill("SIGTERM")
        assert.strictEqual((yield* runner.ended).code, 0)
      })), 90_000)
})

describe("three runners", () => {
  it.live("finish a run exactly once when one that has it is frozen, the next is killed, and the first wakes up beside the third", () =>
    atDesk((desk) => takeOvers(desk, { rows: 160, concurrency: 4, first: "SIGSTOP", second: "SIGKILL" })), 120_000)
})
