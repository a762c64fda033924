/** Builds the static site into `docs/site`, or the folder that is named: `pnpm docs:site [FOLDER]`. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { root } from "../src/Pages.ts"
import { buildSite, deadLinks } from "../src/Site.ts"

const folder = process.argv[2] === undefined ? join(root, "docs/site") : resolve(process.argv[2])
const site = buildSite()
const dead = deadLinks(site)
rmSync(folder, { recursive: true, force: true })
for (const [place, text] of site) {
  const path = join(folder, place)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}
for (const line of dead) console.error(line)
console.log(`${site.size} files in ${folder}`)
process.exitCode = dead.length === 0 ? 0 : 1
