/** After `changeset version`: programs say the version that their packages have. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

for (const folder of ["apps/cli", "apps/console"]) {
  const app = join(import.meta.dirname, "..", folder)
  const { version } = JSON.parse(readFileSync(join(app, "package.json"), "utf8")) as { readonly version: string }
  const file = join(app, "src/version.ts")
  writeFileSync(file, readFileSync(file, "utf8").replace(/export const version = "[^"]*"/, `export const version = "${version}"`))
}
