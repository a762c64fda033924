/**
 * Builds what is published: `buildPublished.ts` all of it, `buildPublished.ts PACKAGE` one package with those that it is made of. What a cache holds is laid
 * over what is there, so that each `dist` is emptied first: an archive has the files of this build and of no other.
 */
import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync, rmSync } from "node:fs"
import { delimiter, join } from "node:path"

interface Manifest {
  readonly name: string
  readonly scripts?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

const root = join(import.meta.dirname, "..")
const [only] = process.argv.slice(2)
const env = { ...process.env, PATH: [join(root, "node_modules/.bin"), join(root, ".tools/node_modules/.bin"), process.env["PATH"]].join(delimiter) }

const built = new Map(["packages", "apps"].flatMap((parent) => readdirSync(join(root, parent)).map((name) => join(root, parent, name))).map((folder) => {
  const manifest: Manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
  return [manifest.name, { folder, manifest }] as const
}).filter(([, { manifest }]) => manifest.scripts?.["build"] !== undefined))

const wanted = new Set<string>()
const want = (name: string): void => {
  const found = built.get(name)
  if (found === undefined || wanted.has(name)) return
  wanted.add(name)
  Object.keys({ ...found.manifest.dependencies, ...found.manifest.devDependencies }).forEach(want)
}

if (only !== undefined && !built.has(only)) {
  console.error(`no package that is built is called ${only}; there are ${[...built.keys()].join(", ")}`)
  process.exit(1)
}
for (const name of only === undefined ? built.keys() : [only]) want(name)
for (const name of wanted) rmSync(join(built.get(name)!.folder, "dist"), { recursive: true, force: true })
const { status } = spawnSync("turbo", ["run", "build", "--output-logs=errors-only", "--ui=stream", ...(only === undefined ? [] : [`--filter=${only}`])], {
  cwd: root, env, stdio: ["ignore", 2, 2], shell: process.platform === "win32"
})
if (status !== 0) {
  console.error(`${only ?? "what is published"} could not be built`)
  process.exit(1)
}
