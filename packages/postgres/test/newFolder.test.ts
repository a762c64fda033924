/** How a new folder of the embedded database comes to its schema. */
import { assert, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { copyFileSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { Database } from "../src/Database.ts"
import { schemaArchive } from "../src/internal/pglite/schemaArchive.ts"
import { ensureSeed } from "../src/internal/pglite/seed.ts"
import * as Migrations from "../src/Migrations.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "purser-new-folder-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** Opens the database of these settings, and looks at its history. */
const history = (settings: Record<string, string>) =>
  Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    const version = yield* Migrations.schemaVersion
    const times = version === 0 ? [] : yield* sql<{ at: Date }>`select min(applied_at) as at from purser.migrations`
    return { version, firstMs: times[0]?.at.getTime() }
  }).pipe(
    Effect.provide(Layer.provideMerge(Layer.fresh(Database.layerConfig), ConfigProvider.layer(ConfigProvider.fromUnknown({ PURSER_PGLITE_FSYNC: "off", ...settings }))))
  )

it.live("begins with the schema, which is the one that migrations make", () =>
  Effect.gen(function*() {
    yield* schemaArchive
    const beganMs = Date.now()
    const dataDir = yield* folder
    const first = yield* history({ PURSER_DATA_DIR: dataDir })
    assert.strictEqual(first.version, Migrations.codeVersion)
    // Its migrations ran when the archive was made.
    assert.isBelow(first.firstMs!, beganMs)
    // And it is a folder as any other.
    assert.deepStrictEqual(yield* history({ PURSER_DATA_DIR: dataDir }), first)
  }), 60_000)

it.live("is migrated where there is no archive with the schema", () =>
  Effect.gen(function*() {
    const seed = yield* ensureSeed
    const cache = yield* folder
    copyFileSync(seed, join(cache, basename(seed)))
    const beganMs = Date.now()
    const { firstMs, version } = yield* history({ PURSER_DATA_DIR: yield* folder, PURSER_CACHE_DIR: cache })
    assert.strictEqual(version, Migrations.codeVersion)
    assert.isAtLeast(firstMs!, beganMs)
  }), 60_000)

it.live("stays empty when nobody may migrate", () =>
  Effect.gen(function*() {
    assert.strictEqual((yield* history({ PURSER_DATA_DIR: yield* folder, PURSER_MIGRATE: "off" })).version, 0)
  }), 60_000)
