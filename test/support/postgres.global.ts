/**
 * Vitest set-up: one real PostgreSQL server for the whole run, the seed from which PGlite starts quickly, and of both a
 * database with Purser's schema that the tests' are copied from.
 *
 * `PURSER_TEST_DATABASE_URL` names a server that is there instead (its user must be allowed to create databases).
 * Test files get their own database on it from `@purser/postgres/TestDatabase`.
 */
import { Effect, Exit, Layer, Redacted, Scope } from "effect"
import { EmbeddedPostgres } from "../../packages/postgres/src/EmbeddedPostgres.ts"
import { ensureSeed } from "../../packages/postgres/src/internal/pglite/seed.ts"
import * as TestDatabase from "../../packages/postgres/src/TestDatabase.ts"

const variable = "PURSER_TEST_DATABASE_URL"

export default async function setup(): Promise<(() => Promise<void>) | undefined> {
  await Effect.runPromise(ensureSeed)
  if (process.env[variable] !== undefined) {
    await Effect.runPromise(TestDatabase.prepare)
    return undefined
  }
  const scope = Scope.makeUnsafe()
  const services = await Effect.runPromise(Layer.buildWithScope(EmbeddedPostgres.layer, scope))
  const { url } = await Effect.runPromise(EmbeddedPostgres.pipe(Effect.provide(services)))
  // The workers are started after this and inherit the environment.
  process.env[variable] = Redacted.value(url)
  await Effect.runPromise(TestDatabase.prepare)
  return () => Effect.runPromise(Scope.close(scope, Exit.void))
}
