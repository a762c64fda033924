/**
 * Builds the `purser` command: `buildCommand.ts` for publishing, into apps/cli/dist; `buildCommand.ts FOLDER` for this
 * workspace, into a folder that gets its name when it is whole, so that two who build at once do not meet. `buildCommand.ts FOLDER ENTRY` does
 * the same with another program of the workspace.
 */
import { cpSync, existsSync, globSync, renameSync, rmSync } from "node:fs"
import { basename, join } from "node:path"
import { bundleCommand } from "./bundleCommand.ts"

const root = join(import.meta.dirname, "..")
const [target, entry = join(root, "apps/cli/src/main.ts")] = process.argv.slice(2)

if (target === undefined) {
  const folder = join(root, "apps/cli/dist")
  // Files lie beside the module that reads them: the embedded database's archives, the empty one and the one with the schema, and the console's page.
  const archives = ["single-*.tar.gz", "schema-single-*.tar.gz"].map((name) => [name, globSync(join(root, "packages/postgres/dist/internal/pglite", name))] as const)
  const page = join(root, "apps/console/dist/web")
  const missing = [
    ...archives.filter(([, found]) => found.length !== 1).map(([name, found]) => `packages/postgres/dist/internal/pglite has ${found.length} of ${name}`),
    ...existsSync(join(page, "index.html")) ? [] : ["apps/console/dist/web has no index.html"]
  ]
  if (missing.length > 0) {
    console.error(`the command is not built, for a part of it is missing: ${missing.join("; ")}. \`pnpm build\` makes all of them in order`)
    process.exit(1)
  }
  await bundleCommand({ entry, folder, home: "installed" })
  for (const [archive] of archives.map(([, found]) => found)) cpSync(archive!, join(folder, basename(archive!)))
  cpSync(page, join(folder, "web"), { recursive: true })
} else {
  const unfinished = `${target}.${process.pid}`
  await bundleCommand({ entry, folder: unfinished, home: "workspace" })
  rmSync(target, { recursive: true, force: true })
  renameSync(unfinished, target)
}
