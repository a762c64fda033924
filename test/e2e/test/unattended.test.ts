/** A run of runners, while none of them is there: the terminal says so wherever one looks. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { atDesk, csv, tens } from "../src/Desk.ts"

const absent = "no runner is heard of: it waits until one is started (purser runner)"
interface Finding {
  readonly check: string
  readonly level: string
  readonly text: string
}

describe("a run that no runner has", () => {
  it.live("is told of by whatever hands it over, acts on it or follows it, and by doctor", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      const key = "rk_test_unattended"
      yield* at.sim.permitKey({ key, permissions: { payment_intent: "write", customer: "read" } })
      for (const [name, rows] of [["july", 3], ["june", 1]] as const) {
        const handed = yield* at.purser(["run", at.write(`${name}.csv`, csv(...tens(rows))), "--detach", "--name", name])
        assert.deepStrictEqual([handed.code, handed.stderr.includes(`run ${name}: ${absent}`)], [0, true], handed.stderr)
      }
      const canceled = yield* at.purser(["runs", "cancel", "june", "--reason", "a mistake"])
      assert.include(canceled.stderr, `run june: ${absent}`)
      const doctor = yield* at.purser(["doctor", "--json"], { PURSER_STRIPE_KEY: key, PURSER_TRANSPORT: "memory" })
      const found = doctor.json?.["findings"] as ReadonlyArray<Finding>
      assert.sameMembers(found.filter(({ check }) => check === "runs").map(({ level, text }) => `${level}: ${text}`), [
        `warn: july is planned: ${absent}`, `warn: june is canceling: ${absent}`
      ])
      const watched = yield* at.start(["runs", "watch", "july"])
      yield* watched.says(`july: ${absent}`)
      yield* at.start(["runner", "--transport", "memory"])
      const ended = yield* watched.ended
      assert.deepStrictEqual([ended.code, (yield* at.paid).length], [0, 3], ended.stderr)
    })), 120_000)
})
