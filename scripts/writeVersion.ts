/** After `changeset version`: the command says the version that its package has. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const cli = join(import.meta.dirname, "../apps/cli")
const { version } = JSON.parse(readFileSync(join(cli, "package.json"), "utf8")) as { readonly version: string }
const file = join(cli, "src/version.ts")
writeFileSync(file, readFileSync(file, "utf8").replace(/export const version = "[^"]*"/, `export const version = "${version}"`))
