/** A fresh store for processes: the environment that points `purser` at it. */
import { postgresUrl, postgresUrlEmpty } from "@purser/postgres/TestDatabase"
import { Effect, Redacted, type Scope } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** A folder that is removed with the scope. */
export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "purser-e2e-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** A store: the environment of its processes. */
export type Store = Effect.Effect<Record<string, string>, unknown, Scope.Scope>

const inFolder: Store = Effect.map(temporaryFolder, (folder) => ({ PURSER_DATA_DIR: folder }))
const onServer = (url: typeof postgresUrl): Store => Effect.map(url, (made) => ({ PURSER_DATABASE_URL: Redacted.value(made) }))

/** Both kinds of store with the schema, by name: of the server a copy, and a new folder begins with it. */
export const stores: ReadonlyArray<readonly ["pglite" | "postgres", Store]> = [["pglite", inFolder], ["postgres", onServer(postgresUrl)]]

/** Both kinds without anything in them, as the proxy wants its own. */
export const emptyStores: typeof stores = [["pglite", inFolder], ["postgres", onServer(postgresUrlEmpty)]]
