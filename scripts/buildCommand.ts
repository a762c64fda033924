/**
 * Builds the `purser` command: `buildCommand.ts` for publishing, into apps/cli/dist; `buildCommand.ts FOLDER` for this
 * workspace, into a folder that gets its name when it is whole, so that two who build at once do not meet. `buildCommand.ts FOLDER ENTRY` does
 * the same with another program of the workspace.
 */
import { cpSync, globSync, renameSync, rmSync } from "node:fs"
import { basename, join } from "node:path"
import { bundleCommand } from "./bundleCommand.ts"

const root = join(import.meta.dirname, "..")
const [target, entry = join(root, "apps/cli/src/main.ts")] = process.argv.slice(2)

if (target === undefined) {
  const folder = join(root, "apps/cli/dist")
  await bundleCommand({ entry, folder, home: "installed" })
  // Files lie beside the module that reads them: the embedded database's archive, and the console's page.
  for (const seed of globSync(join(root, "packages/postgres/dist/internal/pglite/*.tar.gz"))) cpSync(seed, join(folder, basename(seed)))
  cpSync(join(root, "apps/console/dist/web"), join(folder, "web"), { recursive: true })
} else {
  const unfinished = `${target}.${process.pid}`
  await bundleCommand({ entry, folder: unfinished, home: "workspace" })
  rmSync(target, { recursive: true, force: true })
  renameSync(unfinished, target)
}
