import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { soak, violations } from "./support/soak.ts"
import { databases, world } from "./support/world.ts"

for (const [name, database] of databases) {
  describe(`a soak on ${name}`, () => {
    it.live.each([1, 2])("with seed %i: faults of every kind never lead over the cap, and nothing that moved is not counted", (seed) =>
      Effect.gen(function*() {
        const report = yield* soak({ seed, clients: 8, actions: 15, expectedMinor: 8000 })
        assert.deepStrictEqual(violations(report), [], JSON.stringify(report))
        // The run was what it says: the cap was reached, and connections broke.
        assert.isAbove(report.refusedOverCap, 0)
        assert.isAbove(report.broken, 0)
        assert.isAbove(report.payments, 0)
      }).pipe(Effect.provide(world(database))), 120_000)
  })
}
