/** The pages say what the code says, and the programs that they show run. */
import { execFile, spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { describe, expect, it } from "vitest"
import { configKeysOf, errorsOf } from "./names.ts"
import { errorPageViolations, exampleOf, keysOnPage, listViolations } from "./pages.ts"
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
})

describe("examples", () => {
  it("type-check", () => {
    const tsc = join(dirname(fromRoot.resolve("typescript/package.json")), "bin", "tsc")
    const { status, stdout } = spawnSync(node, [tsc, "-p", join(import.meta.dirname, "tsconfig.test.json"), "--noEmit"], { encoding: "utf8" })
    expect(stdout).toBe("")
    expect(status).toBe(0)
  }, 120_000)

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
