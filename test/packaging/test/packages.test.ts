/**
 * What is published, made in a fresh checkout: the archives as they are checked before anybody installs them, and in other hands: installed into an empty
 * project with npm, where they are used. Further package managers and Nodes, and the program of every README: `matrix.test.ts`.
 */
import { StripeSim } from "@purser/stripe-sim"
import { ManagedRuntime } from "effect"
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { execPath } from "node:process"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { freshCheckout } from "../src/checkout.ts"
import { deadLinksOf, expectForOthers, expectLinted, expectTyped, notPeers } from "../src/expectArchive.ts"
import { expectToWork, expectToWorkWithout } from "../src/expectToWork.ts"
import { allowBuilds, compileShown, install, installShown, npm, runShown } from "../src/project.ts"
import { filesOf, manifestOf, must, packAll, type Packed, packWithNpm, publishedFolders, readPacked, root, run, scratch, toolsOf } from "../src/published.ts"
import { allShown, importedBy, shownOn } from "../src/readmes.ts"

const archives = scratch("archives")
const npmArchives = scratch("npm-pack")
let checkout = ""
let packed: ReadonlyArray<Packed> = []
/** The command, packed by npm where nothing had been built. */
let first = ""
const archiveOf = (folder: string): Packed => packed.find((one) => one.folder === folder)!

beforeAll(async () => {
  checkout = await freshCheckout()
  first = await packWithNpm(checkout, "apps/cli", npmArchives)
  // What a build of other sources has left: a module of another name, and a page.
  cpSync(join(checkout, "packages/core/dist/index.js"), join(checkout, "packages/core/dist/Left.js"))
  writeFileSync(join(checkout, "apps/console/dist/web/assets/index-Left.js"), "")
  packed = await packAll(checkout, archives)
}, 600_000)
afterAll(() => [archives, npmArchives, checkout].forEach((folder) => rmSync(folder, { recursive: true, force: true })))

describe.each(publishedFolders)("%s", (folder) => {
  it("has a manifest for others, and nothing that is ours alone", () => expectForOthers(archiveOf(folder)))
  it("has a README whose links lead somewhere where it is installed", async () => expect(await deadLinksOf(archiveOf(folder))).toEqual([]))
  if (folder !== "apps/cli") it("leaves to others what its types name", () => expect(notPeers(join(checkout, folder, "dist"), manifestOf(folder))).toEqual([]))
  it("passes publint", () => expectLinted(archiveOf(folder)))
  it("has the right types for ESM and for bundlers", () => expectTyped(archiveOf(folder)))
})

it("all of them have one version, and get the next one together", () => {
  const { fixed } = JSON.parse(readFileSync(join(root, ".changeset/config.json"), "utf8")) as { readonly fixed: ReadonlyArray<ReadonlyArray<string>> }
  const manifests = publishedFolders.map(manifestOf)
  expect([...fixed[0]!].toSorted()).toEqual(manifests.map(({ name }) => name).toSorted())
  expect(new Set(manifests.map(({ version }) => version)).size).toBe(1)
})

describe("how they are packed", () => {
  it("has nothing of an older build", async () => {
    for (const { tarball } of packed) expect((await filesOf(tarball)).filter((path) => /Left/.test(path))).toEqual([])
  })

  it("is the same by npm pack, also where nothing was built before, and leaves the folder as it was", async () => {
    const own = await packWithNpm(checkout, "apps/console", npmArchives)
    for (const [made, folder] of [[first, "apps/cli"], [own, "apps/console"]] as const) {
      const { tarball } = archiveOf(folder)
      expect(await filesOf(made)).toEqual(await filesOf(tarball))
      expect(JSON.parse(await readPacked(made, "package.json"))).toEqual(JSON.parse(await readPacked(tarball, "package.json")))
      expect([readFileSync(join(checkout, folder, "package.json"), "utf8"), existsSync(join(checkout, folder, "LICENSE"))]).toEqual([readFileSync(join(root, folder, "package.json"), "utf8"), false])
    }
    expect(await filesOf(first)).toEqual(expect.arrayContaining(["dist/main.js", "dist/web/index.html", expect.stringMatching(/^dist\/single-.*\.tar\.gz$/), expect.stringMatching(/^dist\/schema-single-.*\.tar\.gz$/)]))
  }, 240_000)

  it("has the page that people get, whatever mode the environment names", async () => {
    const folder = join(npmArchives, "web")
    await must("node", ["--disable-warning=ExperimentalWarning", "scripts/buildWeb.ts", folder], { cwd: join(checkout, "apps/console"), env: { ...toolsOf(checkout), NODE_ENV: "development" } })
    expect(readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map(({ name }) => name).toSorted())
      .toEqual((await filesOf(archiveOf("apps/console").tarball)).filter((path) => path.startsWith("dist/web/")).map((path) => path.split("/").at(-1)!).toSorted())
  }, 120_000)

  it("refuses a command without one of its parts, by its name", async () => {
    const build = () => run("node", ["--disable-warning=ExperimentalWarning", "scripts/buildCommand.ts"], { cwd: checkout, env: toolsOf(checkout) })
    for (const [part, name] of [["apps/console/dist/web", "apps/console/dist/web"], ["packages/postgres/dist/internal/pglite", "schema-single-"]] as const) {
      renameSync(join(checkout, part), join(checkout, "away"))
      expect(await build()).toMatchObject({ status: 1, stderr: expect.stringContaining(name) })
      renameSync(join(checkout, "away"), join(checkout, part))
    }
  })
})

describe("what the READMEs tell to install", () => {
  const shown = allShown()

  it("is what their programs import, and what that asks for beside it", () => {
    expect(shown.map(({ page }) => page)).toEqual(expect.arrayContaining(["README.md", ...publishedFolders.filter((folder) => folder !== "apps/cli").map((folder) => `${folder}/README.md`)]))
    const peersOf = (name: string) => publishedFolders.map(manifestOf).filter((manifest) => manifest.name === name)
      .flatMap(({ peerDependencies = {}, peerDependenciesMeta = {} }) => Object.keys(peerDependencies).filter((peer) => peerDependenciesMeta[peer]?.optional !== true))
    const missing = shown.flatMap(({ installs, line, page, program }) =>
      [...importedBy(program), ...installs.flatMap(peersOf)].filter((name) => !installs.includes(name)).map((name) => `${page}:${line}: ${name}`))
    expect([...new Set(missing)]).toEqual([])
    for (const page of ["README.md", "apps/cli/README.md"]) expect(readFileSync(join(root, page), "utf8")).toContain(`Node ${manifestOf("packages/purser").engines!["node"]!.replace(">=", "")} or newer`)
    for (const { page } of shown.filter(({ installs }) => installs.includes("zeromq"))) expect(readFileSync(join(root, page), "utf8"), page).toContain(allowBuilds)
    // The check itself sees what is told.
    const [one] = shownOn("x.md", "```sh\nnpm install --save-dev a @b/c   # or d\n```\n\n```ts\nimport { e } from \"@b/c/F\"\nimport \"g\"\n```\n")
    expect([one?.installs, importedBy(one!.program)]).toEqual([["a", "@b/c"], ["@b/c", "g"]])
  })

  it("runs the README's program in an empty project with npm, once and again", async () => {
    const stripe = ManagedRuntime.make(StripeSim.layer())
    const { payments, url } = await stripe.runPromise(StripeSim)
    const one = shown.find(({ page }) => page === "README.md")!
    const folder = await installShown(npm, packed, one)
    expect(await compileShown(folder, one)).toBe("")
    const env = { PURSER_STRIPE_URL: url, PURSER_STRIPE_KEY: "sk_test_sim" }
    expect(await runShown(folder, execPath, env, one)).toMatchObject({ status: 0, stdout: "Succeeded \n", stderr: "" })
    expect(await runShown(folder, execPath, env, one)).toMatchObject({ status: 0, stdout: "Succeeded (charged before)\n", stderr: "" })
    expect(await stripe.runPromise(payments("cust_123", "2026-07", "subscription"))).toBe(1)
    await stripe.dispose()
    rmSync(folder, { recursive: true, force: true })
  }, 240_000)
})

it("npm installs all of them into an empty project, where they compile, run and bill", async () => {
  const folder = await install(npm, packed)
  await expectToWork(folder, execPath)
  await expectToWorkWithout(folder, execPath)
  rmSync(folder, { recursive: true, force: true })
}, 240_000)
