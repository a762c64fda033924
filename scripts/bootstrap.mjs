// Runs a program of this workspace on a machine that has only Node 20 or newer with npm: installs what is missing,
// then starts the program on the Node version that the workspace pins. Plain JavaScript, since it runs before anything
// is installed; a second call installs nothing.
import { spawn, spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const windows = process.platform === "win32"
const programs = {
  demo: { file: () => "apps/demo/src/main.ts", cwd: root },
  check: { file: () => "scripts/check.ts", cwd: root },
  purser: { file: () => commandBundle(), cwd: process.env.INIT_CWD ?? process.cwd() }
}

const [name, ...args] = process.argv.slice(2)
const program = programs[name]
if (program === undefined) {
  console.error(`usage: bootstrap.mjs ${Object.keys(programs).join("|")} [arguments]`)
  process.exit(1)
}

const node = join(root, "node_modules", ".bin", windows ? "node.cmd" : "node")

const run = (command, commandArgs, hint) => {
  const { status } = spawnSync(command, commandArgs, { cwd: root, stdio: ["ignore", 2, 2], shell: windows })
  if (status !== 0) {
    console.error(hint)
    process.exit(1)
  }
}

const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
const stamp = join(root, "node_modules", ".purser-setup")
const wanted = createHash("sha256").update(readFileSync(join(root, "pnpm-lock.yaml"))).update(manifest.packageManager).digest("hex")

if (!existsSync(stamp) || readFileSync(stamp, "utf8") !== wanted) {
  const pnpm = join(root, ".tools", "node_modules", ".bin", windows ? "pnpm.cmd" : "pnpm")
  const version = manifest.packageManager.split("@")[1]
  const installed = join(root, ".tools", "node_modules", "pnpm", "package.json")
  if (!existsSync(installed) || JSON.parse(readFileSync(installed, "utf8")).version !== version) {
    console.error(`Setting up: pnpm ${version} …`)
    mkdirSync(join(root, ".tools"), { recursive: true })
    run("npm", ["install", "--prefix", ".tools", "--no-save", "--no-audit", "--no-fund", "--loglevel=error", manifest.packageManager],
      "pnpm could not be installed through npm")
  }
  console.error("Setting up: packages …")
  run(pnpm, ["install", "--frozen-lockfile", "--reporter=append-only", "--loglevel=error"], "the packages could not be installed")
  run(node, ["--disable-warning=ExperimentalWarning", join(root, "packages", "postgres", "scripts", "buildSeed.ts")],
    "the seed of the embedded database could not be made")
  writeFileSync(stamp, wanted)
}

// The command starts in a tenth of the time when it is one file. The bundle is named by the contents of the sources, so that what runs is always what is
// written there; one that has not been made new for a week is removed.
const commandBundle = () => {
  const bundles = join("node_modules", ".cache", "purser-command")
  const sources = ["packages", "apps"].flatMap((parent) =>
    readdirSync(join(root, parent)).map((name) => join(parent, name, "src")).filter((folder) => existsSync(join(root, folder))).flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true }).filter((name) => name.endsWith(".ts")).map((name) => join(folder, name)).sort()
    )
  )
  const hash = createHash("sha256").update(wanted)
  for (const path of ["scripts/bundleCommand.ts", ...sources]) hash.update(path).update(readFileSync(join(root, path)))
  const bundle = join(bundles, hash.digest("hex").slice(0, 16))
  if (!existsSync(join(root, bundle))) {
    run(node, ["--disable-warning=ExperimentalWarning", join(root, "scripts", "buildCommand.ts"), join(root, bundle)], "the command could not be built")
    const weekAgo = Date.now() - 7 * 86_400_000
    for (const name of readdirSync(join(root, bundles))) {
      if (statSync(join(root, bundles, name)).mtimeMs < weekAgo) rmSync(join(root, bundles, name), { recursive: true, force: true })
    }
  }
  return join(bundle, "main.js")
}

const child = spawn(node, ["--disable-warning=ExperimentalWarning", join(root, program.file()), ...args], {
  cwd: program.cwd,
  stdio: "inherit",
  shell: windows,
  env: { ...process.env, PATH: `${join(root, "node_modules", ".bin")}${windows ? ";" : ":"}${join(root, ".tools", "node_modules", ".bin")}${windows ? ";" : ":"}${process.env.PATH}` }
})
// The terminal sends the signal to the whole group; a supervisor sends it to this process alone.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => signal === "SIGINT" ? undefined : child.kill(signal))
child.on("exit", (code, signal) => process.exit(signal === null ? code ?? 1 : signal === "SIGINT" ? 130 : 137))
