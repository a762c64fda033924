/** The pages say what the code says, and the programs that they show run. */
import { execFile } from "node:child_process"
import { existsSync, readdirSync } from "node:fs"
import { createRequire } from "node:module"
import { basename, dirname, join } from "node:path"
import { beforeAll, describe, expect, it } from "vitest"
import { configKeysOf, errorsOf } from "./names.ts"
import { errorPageViolations, exampleOf, keysOnPage, listViolations, namesBelow, placesOn, wholeFilesOf } from "./pages.ts"
import { packageFolders, readPackage, readText, root } from "./workspace.ts"

const packages = packageFolders(["packages", "apps"]).map(readPackage)
const files = packages.flatMap((pkg) => pkg.files)
const shown = packages.filter(({ folder }) => folder.startsWith("packages/"))
const fromRoot = createRequire(join(root, "package.json"))
/** The Node that the workspace pins: the one that runs the tests may be too old to read TypeScript. */
const node = join(dirname(fromRoot.resolve("node/package.json")), "bin", "node")

/** The environment without settings of ours: an example brings its own. */
const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("PURSER_")))

interface Ended {
  readonly status: unknown
  readonly stdout: string
  readonly stderr: string
}

const ended = (args: ReadonlyArray<string>): Promise<Ended> =>
  new Promise((resolve) => {
    execFile(node, ["--disable-warning=ExperimentalWarning", ...args], { cwd: root, env: environment, timeout: 120_000 }, (error, stdout, stderr) =>
      resolve({ status: error === null ? 0 : error.code ?? error.signal, stdout, stderr }))
  })

/** Programs that end when their module does share a process, one after the other: what they all load is loaded once. */
const together = `for (const file of process.argv.slice(1)) {
  process.stdout.write("\\0" + file + "\\n")
  await import(file)
}`
const endsWithItsModule = (path: string) => /^await /m.test(readText(path))

const runAll = async (paths: ReadonlyArray<string>): Promise<ReadonlyMap<string, Ended>> => {
  const files = paths.filter(endsWithItsModule).map((path) => join(root, path))
  const all = await ended(["--input-type=module", "--eval", together, ...files])
  const printed = new Map(all.stdout.split("\0").slice(1).map((part) => [part.slice(0, part.indexOf("\n")), part.slice(part.indexOf("\n") + 1)]))
  const alone = paths.filter((path) => !endsWithItsModule(path))
  return new Map([
    ...paths.filter(endsWithItsModule).map((path): [string, Ended] => [path, { ...all, stdout: printed.get(join(root, path)) ?? "" }]),
    ...await Promise.all(alone.map(async (path): Promise<[string, Ended]> => [path, await ended([path])]))
  ])
}

const readExample = ({ files: own, folder }: typeof packages[number]) => {
  const readme = `${folder}/README.md`
  const examples = own.filter(({ path }) => path.startsWith(`${folder}/examples/`))
  return exampleOf(existsSync(join(root, readme)) ? readText(readme) : undefined, examples)
}

describe("docs", () => {
  it("errors.md lists every error, and says of each what the class says", () => {
    expect(errorPageViolations(readText("docs/errors.md"), errorsOf(files))).toEqual([])
  })

  it("configuration.md lists every key", () => {
    expect(listViolations("configuration.md", keysOnPage(readText("docs/configuration.md")), configKeysOf(files))).toEqual([])
  })

  it("proof.md lists every module of core and engine that is in no scope of mutation", async () => {
    const { scopes } = await import(join(root, "test/mutation/scopes.mjs")) as { readonly scopes: Parameters<typeof wholeFilesOf>[0] }
    const whole = wholeFilesOf(scopes)
    const others = files.map(({ path }) => path).filter((path) => /^packages\/(core|engine)\/src\//.test(path) && !whole.includes(path))
    const names = others.map((path) => basename(path, ".ts")).filter((name) => name !== "index" && name !== "testing")
    expect(listViolations("proof.md", namesBelow(readText("docs/proof.md"), "### In no scope"), names)).toEqual([])
  })

  const decisions = readdirSync(join(root, "docs/decisions")).toSorted().map((name) => `docs/decisions/${name}`)

  it.each(["CONTRIBUTING.md", ...decisions])("%s leads to places that are there", (page) => {
    expect(placesOn(readText(page), dirname(page)).filter((path) => !existsSync(join(root, path)))).toEqual([])
  })

  it("the list of decisions has every one of them", () => {
    const records = decisions.filter((path) => /\/\d{4}-/.test(path))
    expect(placesOn(readText("docs/decisions/README.md"), "docs/decisions").filter((path) => /\/\d{4}-/.test(path))).toEqual(records)
  })
})

describe("examples", () => {
  const examples = shown.map((pkg) => ({ name: pkg.manifest.name, folder: pkg.folder, example: readExample(pkg) }))
  let results: ReadonlyMap<string, Ended> = new Map()
  beforeAll(async () => {
    results = await runAll(examples.flatMap(({ example }) => typeof example === "string" ? [] : [example.path]))
  }, 180_000)

  it.each(examples)("$name shows a program that runs", ({ example, folder }) => {
    if (typeof example === "string") return expect.fail(`${folder} ${example}`)
    const { status, stderr, stdout } = results.get(example.path)!
    expect(status, stderr).toBe(0)
    // The page shows what comes out, or at least something does.
    if (example.output === undefined) expect(stdout).not.toBe("")
    else expect(stdout).toBe(example.output)
  })
})
