/** The judge is judged: each planted bug is found within its number of seeds, by the violation that it must show. */
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { commandOf, describe as tell, hunt, shrink } from "../src/hunt.ts"
import { mutants } from "../src/mutants.ts"
import { runScenario } from "../src/World.ts"

/** The table of planted bugs: a name, the first seed that showed it, its bound. */
const page = [...readFileSync(join(import.meta.dirname, "../../../docs/proof.md"), "utf8").matchAll(/^\| ([^|]+) \| (\d+) \| (\d+) \|$/gm)]
  .map(([, name, seed, within]) => ({ name, seed: Number(seed), within: Number(within) }))

describe("a planted bug is found", () => {
  for (const mutant of mutants) {
    it(`${mutant.name}, within ${mutant.within} seeds`, { timeout: 600_000 }, async ({ annotate }) => {
      // What the page says is tried first: most worlds of a hunt show nothing.
      const found = await hunt(mutant, page.filter(({ name }) => name === mutant.name).map(({ seed }) => seed))
      assert.isDefined(found)
      await annotate(commandOf(found.seed, mutant))
      // The same world without the bug is sound: it is the bug that was found.
      assert.deepStrictEqual((await runScenario(found.scenario)).violations, [])
    })
  }

  it("and stands with its bound in docs/proof.md, which has no others", () => {
    const rows = page.map(({ name, within }) => `${name}: ${within}`)
    assert.deepStrictEqual(rows, mutants.map(({ name, within }) => `${name}: ${within}`))
  })

  it("again by its name and seed, at the command line", { timeout: 600_000 }, async () => {
    const bug = mutants.find(({ name }) => name === "a cap that only warns")!
    const seed = String((await hunt(bug))!.seed)
    const simulate = join(import.meta.dirname, "../scripts/simulate.ts")
    const { status, stdout } = spawnSync(process.execPath, [simulate, "--mutant", bug.name, "--seed", seed], { encoding: "utf8" })
    assert.deepStrictEqual([status, bug.shows.test(stdout), stdout.includes(commandOf(seed, bug))], [0, true, true])
  })

  it("with a seed that fails again, and no more faults than it needs", { timeout: 600_000 }, async () => {
    const mutant = mutants.find(({ name }) => name === "settle on timeout")!
    const found = (await hunt(mutant))!
    assert.deepStrictEqual(await runScenario(found.scenario, mutant), found.verdict)
    const shrunk = await shrink(found.scenario, mutant)
    assert.strictEqual(shrunk.faults.length, 1)
    const text = tell(String(found.seed), found.scenario, shrunk, found.verdict.violations, mutant)
    assert.include(text, `pnpm simulate --mutant "settle on timeout" --seed ${found.seed}\n`)
    assert.include(text, JSON.stringify(shrunk.faults[0]))
  })
})
