/** A charge is found by the key that its object's name has in it, as the database looks for it. */
import { assert, layer } from "@effect/vitest"
import { Effect, Random } from "effect"
import { SqlClient } from "effect/sql"
import { hasKey, keyIn } from "../../src/internal/eventPages.ts"
import * as TestDatabase from "../../src/TestDatabase.ts"

const key = "0123456789abcdef0123456789abcdef"
const letters = ["0", "a", "f", "A", "g", ":", "_", key, key.slice(0, 31)]

layer(TestDatabase.layerPglite)("the name of an object", (it) => {
  it.effect("has the key where the database finds it there", () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const names = [key, `one:${key}`, `${"0".repeat(31)}_${key}`, `${"0".repeat(32)}_${key}`, `a${key}`, `pi_${key}0`, `one:${key.toUpperCase()}`, ""]
      for (let count = 0; count < 300; count++) {
        const length = yield* Random.nextIntBetween(1, 8)
        names.push((yield* Effect.all(Array.from({ length }, () => Random.choice(letters)))).join(""))
      }
      const rows = yield* sql.unsafe<{ readonly name: string; readonly has: boolean }>(
        `select name, coalesce(${keyIn("name")} = $2::text, false) as has from unnest($1::text[]) with ordinality as n(name, place) order by place`, [names, key])
      assert.deepStrictEqual(names.map((name) => ({ name, has: hasKey(name, key) })), rows.map(({ has, name }) => ({ name, has })))
      assert.isAbove(rows.filter(({ has }) => has).length, 20)
      assert.isAbove(rows.filter(({ has }) => !has).length, 20)
    }).pipe(Random.withSeed("names")))
})
