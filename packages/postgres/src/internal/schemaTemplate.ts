/**
 * A database of a server that has the schema, as something to copy: for tests, which need it hundreds of times.
 *
 * It is named by a hash of the migrations' own text, so that no copy is ever older than the code, and made under another
 * name first, so that nobody copies half of one.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, type Redacted } from "effect"
import { randomUUID } from "node:crypto"
import { Database } from "../Database.ts"
import * as Migrations from "../Migrations.ts"
import { schemaHash } from "./schemaHash.ts"

/** The template's name on every server. */
export const templateName = Effect.map(schemaHash, (hash) => `purser_template_${hash}`)

/**
 * Makes the template of a server unless it is there. `urlOf` is the server's URL with the name of a database; what is needed is a
 * connection to another one.
 */
export const ensureTemplate = Effect.fnUntraced(function*(name: string, urlOf: (name: string) => Redacted.Redacted) {
  const sql = yield* PgClient.PgClient
  const found = sql`select 1 from pg_catalog.pg_database where datname = ${name}`
  if ((yield* found).length > 0) return
  const unfinished = `purser_unfinished_${randomUUID().replaceAll("-", "")}`
  yield* sql`create database ${sql(unfinished)}`
  yield* Migrations.run().pipe(Effect.provide(Layer.fresh(Database.layerUrl(urlOf(unfinished), { maxConnections: 1 }))))
  yield* sql`alter database ${sql(unfinished)} rename to ${sql(name)}`.pipe(
    Effect.catch((error) =>
      // Somebody else was quicker; theirs is the same.
      Effect.andThen(sql`drop database ${sql(unfinished)}`, Effect.flatMap(found, (rows) => rows.length > 0 ? Effect.void : Effect.fail(error)))
    )
  )
})
