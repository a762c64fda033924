/** `purser run` in the hands of somebody else: another process holds it, lets it go on, cancels it, and sees that it was killed. */
import { assert, describe, it } from "@effect/vitest"
import { RunRegistry, standingOf } from "@purser/core"
import { Context, Effect, Schedule } from "effect"
import { atDesk, csv, type Desk, inPairs, paidAtLeast, tens } from "../src/Desk.ts"
import { books, exactlyOnce } from "../src/RunnerWorld.ts"

const settings = { PURSER_RUN_CONTROL_POLL: "100 millis" }
const args = ["run", "bills.csv", "--json", "--concurrency", "2"]
const slowly = (at: Desk, delayMs: number) =>
  at.sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", times: "always" }, action: { kind: "delay", at: "during", delayMs } })
const newest = (at: Desk) =>
  Effect.scoped(Effect.map(Effect.flatMap(books(at), (context) => Context.get(context, RunRegistry).list({ limit: 1 })), ([run]) => run!))

describe("purser run", () => {
  it.live("is held by another process, and goes on", () =>
    atDesk((at) =>
      Effect.gen(function*() {
        at.write("bills.csv", csv(...tens(60)))
        yield* slowly(at, 40)
        const first = yield* at.start(args, settings)
        yield* first.meanwhile(paidAtLeast(at.sim, 3))
        const { runId } = yield* newest(at)
        const paused = yield* at.purser(["runs", "pause", runId, "--reason", "a look"])
        assert.include(paused.stdout, "is paused", paused.stderr)
        yield* first.says("held: a look")
        const sent = (yield* at.paid).length
        assert.isBelow(sent, 60)
        const shown = yield* at.purser(["runs", "show", runId])
        assert.include(shown.stdout, "its command has it in hand", shown.stderr)
        assert.strictEqual((yield* at.paid).length, sent)
        assert.include((yield* at.purser(["runs", "resume", runId])).stdout, "is running")
        const ended = yield* first.ended
        assert.deepStrictEqual([ended.code, ended.json?.["succeeded"]], [0, 60], ended.stderr)
        yield* exactlyOnce(at, 60)
        assert.strictEqual((yield* newest(at)).state, "finished")
      })), 120_000)

  it.live("is one where two commands have the same input at once; the second is told, and sends nothing", () =>
    atDesk((at) =>
      Effect.gen(function*() {
        at.write("bills.csv", csv(...tens(30)))
        at.write("same.csv", csv(...tens(30)))
        at.write("other.csv", csv("x,2026-07,10.00,USD,cus_x,pm_x,base"))
        // The third answer comes when the test says so: until then the first command has the file in hand.
        yield* at.sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", nth: 3 }, action: { kind: "delay", at: "after", delayMs: 600_000 } })
        const first = yield* at.start(args, settings)
        yield* first.meanwhile(paidAtLeast(at.sim, 2))
        const { runId } = yield* newest(at)
        const [same, other] = yield* inPairs([at.purser(["run", "same.csv", "--json"], settings), at.purser(["run", "other.csv", "--json"], settings)])
        assert.deepStrictEqual([same!.code, same!.stdout], [1, ""], same!.stderr)
        assert.include(same!.stderr, `is in hand already: run ${runId} by `)
        assert.strictEqual(other!.code, 0, other!.stderr)
        yield* at.sim.faults.release
        const ended = yield* first.ended
        assert.deepStrictEqual([ended.code, ended.json?.["succeeded"]], [0, 30], ended.stderr)
        const again = yield* at.purser(["run", "same.csv", "--json"], settings)
        assert.deepStrictEqual([again.code, again.json?.["alreadySettled"]], [0, 30], again.stderr)
        yield* exactlyOnce(at, 31)
      })), 120_000)

  it.live("is canceled by another process: what was sent is settled, the rest is not started, and the status says so", () =>
    atDesk((at) =>
      Effect.gen(function*() {
        at.write("bills.csv", csv(...tens(60)))
        yield* slowly(at, 40)
        const run = yield* at.start(args, settings)
        yield* run.meanwhile(paidAtLeast(at.sim, 3))
        const { runId } = yield* newest(at)
        assert.strictEqual((yield* at.purser(["runs", "cancel", runId, "--reason", "wrong month"])).code, 0)
        const ended = yield* run.ended
        assert.deepStrictEqual([ended.code, /The run was canceled: wrong month/.test(ended.stderr)], [2, true], ended.stderr)
        // Its progress says why nothing more is sent, and promises no end.
        assert.match(ended.stderr, /\d+\/60 \d+% canceled: wrong month/)
        const sent = (yield* at.paid).length
        assert.isBelow(sent, 60)
        assert.deepStrictEqual([ended.json?.["succeeded"], ended.json?.["rows"]], [sent, 60])
        const record = yield* newest(at)
        assert.deepStrictEqual([record.state, record.detail], ["canceled", "wrong month"])
        yield* exactlyOnce(at, sent)
      })), 120_000)

  it.live("that is killed is seen as interrupted, and the same command goes on with it: one payment a row", () =>
    atDesk((at) =>
      Effect.gen(function*() {
        at.write("bills.csv", csv(...tens(40)))
        yield* slowly(at, 40)
        const run = yield* at.start(args, { ...settings, PURSER_WORKER_BEAT: "1 second" })
        yield* run.meanwhile(paidAtLeast(at.sim, 3))
        const { runId } = yield* newest(at)
        assert.strictEqual(standingOf(yield* newest(at)), "running")
        yield* run.kill("SIGKILL")
        yield* run.ended
        yield* Effect.repeat(newest(at), { until: (one) => standingOf(one) === "interrupted", schedule: Schedule.spaced("500 millis") })
        const listed = yield* at.purser(["runs", "--state", "interrupted"])
        assert.match(listed.stdout, new RegExp(`${runId} .*interrupted .*last heard of at`), listed.stderr)
        const watched = yield* at.purser(["runs", "watch", runId])
        assert.deepStrictEqual([watched.code, watched.stderr.includes("is interrupted")], [2, true], watched.stderr)
        const finished = yield* at.purser(args, settings)
        assert.deepStrictEqual([finished.code, finished.json?.["succeeded"]], [0, 40], finished.stderr)
        yield* exactlyOnce(at, 40)
        const shown = yield* at.purser(["runs", "show", runId, "--json"])
        assert.deepStrictEqual([shown.json?.["state"], String(shown.json?.["detail"]).startsWith("gone on with as run ")], ["interrupted", true], shown.stdout)
        assert.deepInclude(shown.json?.["counts"], { rows: 40, succeeded: 40 })
        const paid = yield* at.purser(["runs", "watch", runId])
        assert.deepStrictEqual([paid.code, /interrupted, 40 of 40 settled, 40 paid/.test(paid.stderr)], [0, true], paid.stderr)
      })), 120_000)
})
