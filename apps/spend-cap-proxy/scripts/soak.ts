/**
 * `node scripts/soak.ts [MINUTES] [SEED]`: soaks with one seed after the other until the time is over. It ends with status
 * 1, and the seed, at the first violation.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Clock, Console, Effect } from "effect"
import { soak, violations } from "../test/support/soak.ts"
import { databases, world } from "../test/support/world.ts"

const minutes = Number(process.argv[2] ?? 5)
const firstSeed = Number(process.argv[3] ?? 1)

const program = Effect.gen(function*() {
  const endMs = (yield* Clock.currentTimeMillis) + minutes * 60_000
  for (let seed = firstSeed; (yield* Clock.currentTimeMillis) < endMs; seed++) {
    const [name, database] = databases[seed % databases.length]!
    const report = yield* soak({ seed, clients: 16, actions: 50, expectedMinor: 40_000 }).pipe(Effect.provide(world(database)))
    yield* Console.log(JSON.stringify({ seed, store: name, ...report }))
    const found = violations(report)
    if (found.length > 0) return yield* Effect.die(new Error(`seed ${seed}: ${found.join("; ")}`))
  }
})

NodeRuntime.runMain(program)
