/**
 * `npm pack` in a package's folder gives the archive that a release gives. npm knows neither `exports` in `publishConfig`, nor
 * `workspace:` and `catalog:`: pnpm does, and makes the manifest that stands in the folder for as long as npm packs.
 *
 * Runs as `prepack` and `postpack` of each package; pnpm needs none of it.
 */
import { execFileSync } from "node:child_process"
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"

const root = join(import.meta.dirname, "..")
const folder = process.cwd()
const manifest = join(folder, "package.json")
const license = join(folder, "LICENSE")
const kept = join(folder, "node_modules/.cache/package.json")

/** What npm tells its scripts about itself would be taken for settings of pnpm. */
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)))
const run = (command: string, args: ReadonlyArray<string>): string =>
  execFileSync(command, args, { cwd: folder, env, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"], shell: process.platform === "win32" })

const restore = (): void => {
  if (!existsSync(kept)) return
  renameSync(kept, manifest)
  rmSync(license, { force: true })
}

const prepare = (): void => {
  const pnpm = join(root, ".tools/node_modules/.bin", process.platform === "win32" ? "pnpm.cmd" : "pnpm")
  const scratch = mkdtempSync(join(tmpdir(), "purser-pack-"))
  try {
    const { name } = JSON.parse(readFileSync(manifest, "utf8")) as { readonly name: string }
    run(process.execPath, ["--disable-warning=ExperimentalWarning", join(root, "scripts/buildPublished.ts"), name])
    run(pnpm, ["pack", "--pack-destination", scratch])
    const archive = join(scratch, readdirSync(scratch)[0]!)
    const published = run("tar", ["-xzOf", archive, "package/package.json"])
    mkdirSync(dirname(kept), { recursive: true })
    copyFileSync(manifest, kept)
    writeFileSync(manifest, published)
    copyFileSync(join(root, "LICENSE"), license)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

if (!(process.env["npm_config_user_agent"] ?? "").startsWith("pnpm/")) {
  // Also what a packing that was cut off has left.
  restore()
  try {
    if (process.argv[2] === "prepack") prepare()
  } catch (error) {
    // What went wrong has been said by the program that it went wrong in.
    console.error(`${folder} is not packed: ${(error as Error).message}`)
    process.exitCode = 1
  }
}
