/** The same with each package manager, on each Node that is promised, and the program of every README with what it tells to install. Minutes: `pnpm test:long`. */
import { StripeSim } from "@purser/stripe-sim"
import { ManagedRuntime } from "effect"
import { realpathSync, rmSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { execPath } from "node:process"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { freshCheckout } from "../src/checkout.ts"
import { expectToServe, expectToWork } from "../src/expectToWork.ts"
import { compile, compileShown, install, installShown, type Manager, npm, pnpm, purser, runProgram, runShown, yarn } from "../src/project.ts"
import { must, packAll, type Packed, run, scratch } from "../src/published.ts"
import { allShown } from "../src/readmes.ts"

const tools = scratch("tools")
const versions = ["22", "24", "26"]
const tooOld = "20"
const nodeOf = (version: string) => join(tools, version, "node_modules/node/bin/node")
const yarnProgram = join(tools, "yarn/node_modules/@yarnpkg/cli-dist/bin/yarn.js")
const managers: ReadonlyArray<Manager> = [npm, pnpm, yarn(yarnProgram, "node-modules")]
let packed: ReadonlyArray<Packed> = []

const fetchTool = (folder: string, spec: string) =>
  must("npm", ["install", "--prefix", join(tools, folder), "--no-save", "--no-audit", "--no-fund", "--loglevel=error", spec])

beforeAll(async () => {
  const checkout = await freshCheckout()
  packed = await packAll(checkout, tools)
  rmSync(checkout, { recursive: true, force: true })
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

  it("says on an older Node which one it needs, the command and the library", async () => {
    expect(await purser(folder, nodeOf(tooOld), ["--version"])).toMatchObject({ status: 1, stdout: "", stderr: expect.stringMatching(/^purser needs Node 22\.19 or newer, and this is Node 20\./) })
    expect(await runProgram(folder, nodeOf(tooOld), "old.mjs")).toEqual({ said: expect.stringMatching(/ Purser needs Node 22\.19 or newer, and this is Node 20\.[\d.]+$/) })
  })

  it.each(versions)("works on Node %s", async (version) => {
    expect((await must(nodeOf(version), ["--version"])).slice(1, 3)).toBe(version)
    await expectToWork(folder, nodeOf(version))
    await expectToServe(folder, nodeOf(version))
  }, 240_000)
})

it("works where yarn keeps no node_modules, as it does unless told otherwise", async () => {
  const folder = await install(yarn(yarnProgram, "pnp"), packed)
  expect(JSON.parse(await must("node", [yarnProgram, "node", "program.mjs"], { cwd: folder }))).toMatchObject({
    inMemory: { outcome: "Succeeded", payments: 1 },
    embedded: { outcomes: ["Succeeded", "Succeeded before"], payments: 1 }
  })
  expect(await run("node", [yarnProgram, "purser", "--help"], { cwd: folder })).toMatchObject({ status: 0, stdout: expect.stringContaining("Bill every customer and period exactly once") })
  rmSync(folder, { recursive: true, force: true })
}, 300_000)

describe.each([npm, pnpm])("with $name, what a README tells to install is enough for its program", (manager) => {
  it.each(allShown())("$page:$line", async (shown) => {
    const folder = await installShown(manager, packed, shown)
    expect(await compileShown(folder, shown)).toBe("")
    const stripe = ManagedRuntime.make(StripeSim.layer())
    const { url } = await stripe.runPromise(StripeSim)
    const ended = await runShown(folder, execPath, { PURSER_STRIPE_URL: url, PURSER_STRIPE_KEY: "sk_test_sim" }, shown)
    await stripe.dispose()
    expect(ended, ended.stderr).toMatchObject({ status: 0 })
    rmSync(folder, { recursive: true, force: true })
  }, 240_000)
})
