/** A fresh store for processes: the environment that points `purser` at it. */
import { postgresUrl } from "@purser/postgres/TestDatabase"
import { Effect, Redacted, type Scope } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** A folder that is removed with the scope. */
export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "purser-e2e-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** Both kinds of store, by name. */
export const stores: ReadonlyArray<readonly ["pglite" | "postgres", Effect.Effect<Record<string, string>, unknown, Scope.Scope>]> = [
  ["pglite", Effect.map(temporaryFolder, (folder) => ({ PURSER_DATA_DIR: folder }))],
  ["postgres", Effect.map(postgresUrl, (url) => ({ PURSER_DATABASE_URL: Redacted.value(url) }))]
]
