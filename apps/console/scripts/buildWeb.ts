/**
 * Builds the page into `dist/web`, or into the folder that is given. It is made beside its place and moved there whole, so that
 * two who build at once, and one who serves meanwhile, meet no half of it.
 */
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { build } from "vite"
import { stampFile, webStamp } from "../src/internal/webStamp.ts"

const packageFolder = join(import.meta.dirname, "..")
const target = process.argv[2] ?? join(packageFolder, "dist", "web")
const unfinished = `${target}.${process.pid}`

// The page is what people get, whoever builds it: with another mode in the environment React would be the one for its developers.
process.env["NODE_ENV"] = "production"
mkdirSync(dirname(target), { recursive: true })
await build({
  root: join(packageFolder, "web"),
  base: "./",
  configFile: false,
  logLevel: "warn",
  build: {
    outDir: unfinished,
    emptyOutDir: true,
    target: "es2022",
    // Files alone: the page's policy runs nothing that stands in the page itself.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false
  }
})
writeFileSync(join(unfinished, stampFile), webStamp(packageFolder))
rmSync(target, { recursive: true, force: true })
renameSync(unfinished, target)
