/** The same with each package manager, and on each Node that is promised. Minutes: `pnpm test:long`. */
import { realpathSync, rmSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { expectToServe, expectToWork } from "../src/expectToWork.ts"
import { compile, install, type Manager, npm, pnpm, purser, yarn } from "../src/project.ts"
import { must, packAll, type Packed, scratch } from "../src/published.ts"

const tools = scratch("tools")
const versions = ["22", "24", "26"]
const tooOld = "20"
const nodeOf = (version: string) => join(tools, version, "node_modules/node/bin/node")
const managers: ReadonlyArray<Manager> = [npm, pnpm, yarn(join(tools, "yarn/node_modules/@yarnpkg/cli-dist/bin/yarn.js"))]
let packed: ReadonlyArray<Packed> = []

const fetchTool = (folder: string, spec: string) =>
  must("npm", ["install", "--prefix", join(tools, folder), "--no-save", "--no-audit", "--no-fund", "--loglevel=error", spec])

beforeAll(async () => {
  packed = await packAll(tools)
  await fetchTool("yarn", "@yarnpkg/cli-dist@4.18.1")
  for (const version of [tooOld, ...versions]) await fetchTool(version, `node@${version}`)
}, 600_000)
afterAll(() => rmSync(tools, { recursive: true, force: true }))

describe.each(managers)("installed by $name", (manager) => {
  let folder = ""
  beforeAll(async () => {
    folder = await install(manager, packed)
  }, 600_000)
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it("has one copy of Effect and of Stripe for all packages", () => {
    const copiesOf = (name: string, folders: ReadonlyArray<string>) =>
      new Set(folders.map((one) => realpathSync(createRequire(realpathSync(join(folder, one, "package.json"))).resolve(name))))
    const libraries = packed.filter(({ folder }) => folder !== "apps/cli").map(({ name }) => `node_modules/${name}`)
    expect(copiesOf("effect", ["", ...libraries]).size).toBe(1)
    expect(copiesOf("stripe", ["", "node_modules/@purser/stripe"]).size).toBe(1)
  })

  it("compiles for bundlers too", async () => {
    expect(await compile(folder, "bundler")).toBe("")
  }, 120_000)

  it("says on an older Node which one it needs", async () => {
    expect(await purser(folder, nodeOf(tooOld), ["--version"])).toMatchObject({ status: 1, stdout: "", stderr: expect.stringMatching(/^purser needs Node 22\.19 or newer, and this is Node 20\./) })
  })

  it.each(versions)("works on Node %s", async (version) => {
    expect((await must(nodeOf(version), ["--version"])).slice(1, 3)).toBe(version)
    await expectToWork(folder, nodeOf(version))
    await expectToServe(folder, nodeOf(version))
  }, 240_000)
})
