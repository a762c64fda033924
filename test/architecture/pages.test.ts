/** The pages say what the code says, and the programs that they show run. */
import { execFile } from "node:child_process"
import { existsSync, readdirSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { describe, expect, it } from "vitest"
import { configKeysOf, errorsOf } from "./names.ts"
import { errorPageViolations, exampleOf, keysOnPage, listViolations, placesOn } from "./pages.ts"
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

const run = (path: string): Promise<Ended> =>
  new Promise((resolve) => {
    execFile(node, ["--disable-warning=ExperimentalWarning", join(root, path)], { cwd: root, env: environment, timeout: 60_000 }, (error, stdout, stderr) =>
      resolve({ status: error === null ? 0 : error.code ?? error.signal, stdout, stderr }))
  })

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
  it.each(shown)("$manifest.name shows a program that runs", async (pkg) => {
    const example = readExample(pkg)
    if (typeof example === "string") return expect.fail(`${pkg.folder} ${example}`)
    const ended = await run(example.path)
    expect(ended, ended.stderr).toMatchObject({ status: 0 })
    // The page shows what comes out, or at least something does.
    if (example.output === undefined) expect(ended.stdout).not.toBe("")
    else expect(ended.stdout).toBe(example.output)
  }, 90_000)
})
