/** A runner that is stopped on purpose hands its run on, or keeps it for its next start; the books count. */
import { assert, describe, it } from "@effect/vitest"
import { StripeSim } from "@purser/stripe-sim"
import { Effect } from "effect"
import { atDesk, csv, desk, type Desk, paidAtLeast, tens } from "../src/Desk.ts"
import { stores } from "../src/Store.ts"

const rows = 80
const settings = { PURSER_RUN_PAGE: "10" }
const exactlyOnce = (at: Desk) =>
  Effect.map(at.sim.books, (books) => {
    assert.strictEqual(books.length, rows)
    assert.deepStrictEqual(new Set(books.map(({ payments }) => payments)), new Set([1]))
  })
const slowly = (at: Desk) =>
  at.sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", times: "always" }, action: { kind: "delay", at: "during", delayMs: 30 } })
const detach = (at: Desk) => at.purser(["run", at.write("july.csv", csv(...tens(rows))), "--detach", "--concurrency", "2"], settings)
const runnerOf = (at: Desk, name: string) =>
  Effect.tap(at.start(["runner", "--transport", "memory"], { ...settings, PURSER_WORKER: name }), (runner) => runner.says("workers"))

describe("a runner that is stopped", () => {
  it.live("in mid-run leaves with 0, and another one finishes the run", () =>
    atDesk((at) =>
      Effect.gen(function*() {
        yield* slowly(at)
        yield* detach(at)
        const first = yield* runnerOf(at, "first")
        yield* paidAtLeast(at.sim, 5)
        const second = yield* runnerOf(at, "second")
        yield* first.kill("SIGTERM")
        const ended = yield* first.ended
        assert.deepStrictEqual([ended.code, ended.signal], [0, null], ended.stderr)
        assert.isBelow((yield* at.sim.books).length, rows)
        const watched = yield* second.meanwhile(at.purser(["runs", "watch", "july.csv", "--json"], settings))
        assert.deepStrictEqual([watched.code, watched.json?.["state"], watched.json?.["runner"]], [0, "finished", "second"], watched.stderr)
        yield* exactlyOnce(at)
      })), 120_000)

  it.live("on the embedded database goes on with the run when it is started again, also after a kill", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* desk(stores.find(([name]) => name === "pglite")![1])
      yield* slowly(at)
      const handed = yield* detach(at)
      assert.include(handed.stderr, "start `purser runner`")
      assert.include((yield* at.purser(["runs"], settings)).stdout, "no runner is heard of: it waits until one is started (purser runner)")
      const first = yield* runnerOf(at, "first")
      yield* paidAtLeast(at.sim, 5)
      yield* first.kill("SIGKILL")
      yield* first.ended
      const second = yield* runnerOf(at, "second")
      yield* second.meanwhile(paidAtLeast(at.sim, rows))
      yield* second.kill("SIGTERM")
      assert.strictEqual((yield* second.ended).code, 0)
      const listed = yield* at.purser(["runs", "show", "july.csv"], settings)
      assert.include(listed.stdout, "second", listed.stderr)
      yield* exactlyOnce(at)
    })).pipe(Effect.provide(StripeSim.layer())), 120_000)
})
