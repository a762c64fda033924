/** Opens the database that the environment names, else the embedded one in `.purser`, and asks for its schema. */
import { NodeRuntime } from "@effect/platform-node"
import { Database, Migrations } from "@purser/postgres"
import { Console, Effect, Layer } from "effect"

const program = Effect.gen(function*() {
  const { label, version } = yield* Database
  const schemaVersion = yield* Migrations.schemaVersion
  yield* Console.log(`PostgreSQL ${version}, ${label}, schema version ${schemaVersion}`)
})

program.pipe(
  Effect.provide(Layer.provideMerge(Migrations.layer, Database.layerConfig)),
  NodeRuntime.runMain
)
