/** How fast a run goes is of the time that has passed. */
import { assert, describe, it } from "@effect/vitest"
import { RunPace } from "../src/RunPace.ts"

describe("a run's rate", () => {
  it("is of the last minute, or since the run began or went on", () => {
    const nowMs = 1_000_000
    const from = (...beginnings: ReadonlyArray<number | null | undefined>) => nowMs - RunPace.fromMs(nowMs, beginnings)
    assert.deepStrictEqual([from(), from(null, undefined), from(nowMs - 90_000), from(nowMs - 8000, nowMs - 50_000, null), from(nowMs + 5)], [60_000, 60_000, 60_000, 8000, 0])
    assert.deepStrictEqual([RunPace.perSecond(440, 8000), RunPace.perSecond(0, 8000), RunPace.perSecond(3, 10), RunPace.perSecond(-1, 1000)], [55, 0, 3, 0])
  })

  it("tells how long the rest takes, where it ends", () => {
    assert.deepStrictEqual([RunPace.leftMs(110, 55), RunPace.leftMs(1, 0), RunPace.leftMs(0, 55)], [2000, null, null])
  })
})
