/**
 * Makes the archives from which new embedded databases start in a fraction of a second: an empty one, and one with the schema.
 * Without them they start too, in seconds. Run it once after installing; it does nothing when the archives are there.
 * `buildSeed.ts FOLDER` lays copies into a folder of what is published.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect } from "effect"
import { copyFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { gzipSync } from "node:zlib"
import { schemaArchive } from "../src/internal/pglite/schemaArchive.ts"
import { ensureSeed, shippedSchemaName } from "../src/internal/pglite/seed.ts"

const target = process.argv[2]

NodeRuntime.runMain(Effect.gen(function*() {
  const seed = yield* ensureSeed
  const archive = yield* schemaArchive
  if (target !== undefined) {
    const schema = yield* shippedSchemaName
    yield* Effect.sync(() => {
      mkdirSync(target, { recursive: true })
      // Those of another version of PGlite would be published too.
      for (const old of readdirSync(target)) if (old.endsWith(".tar.gz")) rmSync(join(target, old))
      copyFileSync(seed, join(target, basename(seed)))
      writeFileSync(join(target, schema), gzipSync(archive, { level: 9 }))
    })
  }
  yield* Console.log(`embedded database seed: ${seed}`)
}))
