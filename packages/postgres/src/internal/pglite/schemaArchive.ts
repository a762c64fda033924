/**
 * Makes the archive of a cluster that has the schema, from which a test's PGlite and a new embedded folder begin: the
 * migrations run once. It is named by a hash of the migrations, as a server's template is.
 */
import { Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { Database } from "../../Database.ts"
import * as Migrations from "../../Migrations.ts"
import { archiveOf, schemaFile, schemaPrefix } from "./seed.ts"

const makeArchive = Effect.acquireUseRelease(
  Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "purser-schema-"))),
  (folder) =>
    Migrations.run().pipe(
      Effect.provide(Layer.fresh(Database.layerEmbedded({ dataDir: folder, fsync: false }))),
      Effect.andThen(Effect.sync(() => archiveOf(Path.join(folder, "db")))),
      Effect.orDie
    ),
  (folder) => Effect.sync(() => Fs.rmSync(folder, { recursive: true, force: true }))
)

/** The archive of a cluster with the schema; it is kept beside the seed, and made if it is not there. Not compressed: it is read often. */
export const schemaArchive = Effect.gen(function*() {
  const file = yield* schemaFile
  const [folder, name] = [Path.dirname(file), Path.basename(file)]
  const kept = yield* Effect.option(Effect.try(() => Fs.readFileSync(file)))
  if (kept._tag === "Some") return kept.value
  const archive = yield* makeArchive
  // A folder that cannot be written costs time only.
  yield* Effect.ignore(Effect.try(() => {
    Fs.mkdirSync(folder, { recursive: true })
    for (const old of Fs.readdirSync(folder)) if (old.startsWith(schemaPrefix) && old !== name) Fs.rmSync(Path.join(folder, old), { force: true })
    const unfinished = Path.join(folder, `unfinished-${randomUUID()}`)
    Fs.writeFileSync(unfinished, archive)
    Fs.renameSync(unfinished, file)
  }))
  return archive
})
