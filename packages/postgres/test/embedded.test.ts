import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { Database } from "../src/Database.ts"
import { temporaryFolder } from "./support/folder.ts"
import { startProgram } from "./support/program.ts"

const open = (dataDir: string) => Database.layerEmbedded({ dataDir, fsync: false })
const ids = Effect.flatMap(SqlClient.SqlClient, (sql) => sql<{ id: string }>`select id from row`)
const tagOf = (dataDir: string) => Effect.map(Effect.flip(Effect.scoped(Layer.build(open(dataDir)))), (error) => error._tag)

describe("the embedded database", () => {
  it.live("belongs to one process, and to the next one when that is killed or ends", () =>
    Effect.gen(function*() {
      const dataDir = yield* temporaryFolder
      const owner = yield* startProgram("openDatabase.ts", dataDir, "off")
      assert.strictEqual(yield* owner.line, "open")
      const second = yield* startProgram("openDatabase.ts", dataDir, "off")
      assert.match(yield* second.line, /^DatabaseInUse \d+$/)
      assert.strictEqual(yield* tagOf(dataDir), "DatabaseInUse")
      yield* owner.kill
      yield* Effect.scoped(Effect.gen(function*() {
        yield* Layer.build(open(dataDir))
        assert.strictEqual(yield* tagOf(dataDir), "DatabaseInUse")
      }))
      const third = yield* startProgram("openDatabase.ts", dataDir, "off")
      assert.strictEqual(yield* third.line, "open")
      yield* third.end
    }), 90_000)

  for (const fsync of ["on", "off"]) {
    it.live(`holds every acknowledged row after kill -9, fsync ${fsync}`, () =>
      Effect.gen(function*() {
        const dataDir = yield* temporaryFolder
        const acknowledged: Array<string> = []
        for (let life = 0; life < 2; life++) {
          const writer = yield* startProgram("openDatabase.ts", dataDir, fsync, "insert")
          assert.strictEqual(yield* writer.line, "open")
          for (let row = 0; row < 400; row++) acknowledged.push(yield* writer.line)
          yield* writer.kill
          acknowledged.push(...yield* writer.rest)
        }
        const rows = yield* Effect.provide(ids, open(dataDir))
        const present = new Set(rows.map(({ id }) => id))
        assert.isAtLeast(acknowledged.length, 800)
        assert.deepStrictEqual(acknowledged.filter((id) => !present.has(id)), [])
      }), 120_000)
  }

  it.live("is not confused by a folder whose creation was cut off", () =>
    Effect.gen(function*() {
      const dataDir = yield* temporaryFolder
      const leftover = Path.join(dataDir, "db.new-cut-off")
      yield* Effect.sync(() => {
        Fs.mkdirSync(leftover)
        Fs.writeFileSync(Path.join(leftover, "PG_VERSION"), "18\n")
      })
      yield* Effect.provide(Effect.flatMap(SqlClient.SqlClient, (sql) => sql`select 1`), open(dataDir))
      assert.deepStrictEqual(Fs.readdirSync(dataDir).sort(), ["db", "db.lock", "db.owner.json"])
    }), 60_000)

  it.live("starts without a seed, and with a damaged one", () =>
    Effect.gen(function*() {
      for (const seed of [undefined, "half of an archive"]) {
        const cache = yield* temporaryFolder
        const dataDir = yield* temporaryFolder
        const name = Fs.readdirSync(Path.join(import.meta.dirname, "../node_modules/.cache/purser"))[0]!
        if (seed !== undefined) yield* Effect.sync(() => Fs.writeFileSync(Path.join(cache, name), seed))
        const environment = ConfigProvider.layer(ConfigProvider.fromUnknown({ PURSER_CACHE_DIR: cache }))
        const database = yield* Effect.provide(Database, Layer.provide(open(dataDir), environment))
        assert.strictEqual(database.kind, "pglite")
      }
    }), 120_000)
})
