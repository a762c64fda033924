/** Databases with the schema are copies: of what the migrations of this code make, and each a database of its own. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { randomUUID } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Database } from "../src/Database.ts"
import { ensureTemplate } from "../src/internal/schemaTemplate.ts"
import * as Migrations from "../src/Migrations.ts"
import * as TestDatabase from "../src/TestDatabase.ts"

/** Tables, columns, indexes, constraints and functions of the schema, and the list of its migrations. */
const catalog = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const columns = yield* sql`select table_name, column_name, data_type, column_default, is_nullable from information_schema.columns
    where table_schema = 'purser' order by 1, 2`
  const indexes = yield* sql`select indexname, indexdef from pg_indexes where schemaname = 'purser' order by 1`
  const constraints = yield* sql`select conrelid::regclass::text as "table", conname, pg_get_constraintdef(oid) as definition from pg_constraint
    where connamespace = 'purser'::regnamespace order by 1, 2`
  const functions = yield* sql`select proname, pg_get_functiondef(oid) as definition from pg_proc where pronamespace = 'purser'::regnamespace order by 1, 2`
  const migrations = yield* sql`select version, name from purser.migrations order by 1`
  return { columns, indexes, constraints, functions, migrations }
})

describe.each(TestDatabase.layers)("a copied database on %s", (name, copied) => {
  const [, empty] = TestDatabase.layersEmpty.find(([kind]) => kind === name)!

  it.live("is what the migrations make of an empty one", () =>
    Effect.gen(function*() {
      const made = yield* Effect.andThen(Migrations.run(), catalog).pipe(Effect.provide(Layer.fresh(empty)))
      const copy = yield* Effect.provide(catalog, Layer.fresh(copied))
      assert.deepStrictEqual(copy, made)
      assert.isAbove(copy.functions.length, 0)
    }), 60_000)

  it.live("is nobody else's", () =>
    Effect.gen(function*() {
      const write = Effect.gen(function*() {
        const sql = yield* SqlClient.SqlClient
        assert.deepStrictEqual(yield* sql`select to_regclass('purser.mine')::text as there`, [{ there: null }])
        yield* sql`create table purser.mine (id integer)`
      })
      yield* Effect.provide(write, Layer.fresh(copied))
      yield* Effect.provide(write, Layer.fresh(copied))
    }), 60_000)
})

it.live("a template is made once, however many make it at the same time", () =>
  Effect.gen(function*() {
    const one = yield* TestDatabase.postgresUrlEmpty
    const urlOf = (name: string) => Redacted.make(new URL(`/${name}`, Redacted.value(one)).href)
    const name = `purser_test_template_${randomUUID().replaceAll("-", "")}`
    yield* Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      yield* Effect.addFinalizer(() => Effect.orDie(sql`drop database if exists ${sql(name)}`))
      yield* Effect.all(Array.from({ length: 4 }, () => ensureTemplate(name, urlOf)), { concurrency: "unbounded" })
      assert.strictEqual(yield* Effect.provide(Migrations.schemaVersion, Layer.fresh(Database.layerUrl(urlOf(name)))), Migrations.codeVersion)
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(Database.layerUrl(one))))
  }), 60_000)

it("has a name that stands for all that the migrations are made of", () => {
  const folder = join(import.meta.dirname, "../src/migrations")
  for (const file of readdirSync(folder)) {
    const imported = [...readFileSync(join(folder, file), "utf8").matchAll(/^import (?!type ).* from "([^"]+)"/gm)].map((match) => match[1]!)
    assert.deepStrictEqual(imported.filter((from) => !from.startsWith("effect") && !/^\.\/\d+_\w+\.ts$/.test(from)), [], file)
  }
})
