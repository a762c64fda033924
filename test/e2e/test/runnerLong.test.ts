/** Runs of 5,000 charges whose runners are killed and frozen, in either order; by the books every row is paid once. */
import { describe, it } from "@effect/vitest"
import { atDesk } from "../src/Desk.ts"
import { takeOvers } from "../src/RunnerWorld.ts"

describe("a run of 5,000 charges on three runners", () => {
  for (const [first, second] of [["SIGKILL", "SIGSTOP"], ["SIGSTOP", "SIGKILL"], ["SIGKILL", "SIGKILL"], ["SIGSTOP", "SIGSTOP"]] as const) {
    it.live(`outlives ${first} of the runner that has it, and ${second} of the next`, () =>
      atDesk((desk) => takeOvers(desk, { rows: 5000, concurrency: 16, first, second })), 600_000)
  }
})
