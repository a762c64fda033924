/** Seeds of whole worlds: none breaks the promise. The verdict depends on the number of seeds alone, never on speed. */
import { assert, describe, it } from "vitest"
import { describe as tell, shrink } from "../src/hunt.ts"
import { scenarioOf } from "../src/Scenario.ts"
import { runScenario } from "../src/World.ts"

const seeds = 300
const batch = 50

const judged = async (seed: string) => {
  const scenario = scenarioOf(seed)
  const verdict = await runScenario(scenario)
  if (verdict.violations.length > 0) assert.fail(tell(seed, scenario, await shrink(scenario), verdict.violations))
  return verdict
}

describe("worlds in which everything goes wrong", () => {
  for (let from = 1; from <= seeds; from += batch) {
    it(`keep the promise: seeds ${from} to ${from + batch - 1}`, { timeout: 600_000 }, async () => {
      let payments = 0
      for (let seed = from; seed < from + batch; seed++) {
        payments += (await judged(String(seed))).payments
      }
      // A world in which nobody is ever charged would keep every promise.
      assert.isAbove(payments, batch)
    })
  }

  it("keep the promise: seeds far off that have broken it", { timeout: 600_000 }, async () => {
    for (const seed of ["21962", "23959", "42948"]) await judged(seed)
  })

  it("are the same for the same seed, to the last request", { timeout: 600_000 }, async () => {
    for (const seed of ["3", "17", "25", "27", "44", "68", "101"]) {
      const one = await runScenario(scenarioOf(seed))
      const same = await runScenario(scenarioOf(seed))
      assert.deepStrictEqual(same, one)
      assert.notStrictEqual((await runScenario(scenarioOf(`${seed}x`))).digest, one.digest)
    }
  })
})
