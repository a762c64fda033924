/** The archives as they are checked before anybody installs them: those of the libraries in every run, those of the programs in the long one. */
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core"
import { readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { publint } from "publint"
import { formatMessage } from "publint/utils"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { libraryFolders, type Manifest, must, packAll, packLibraries, type Packed, publishedFolders, readPacked, root, scratch } from "../src/published.ts"

const isLong = process.env["PURSER_TEST_LONG"] !== undefined
const archives = scratch("archives")
let packed: ReadonlyArray<Packed> = []
const archiveOf = (folder: string): Packed => packed.find((one) => one.folder === folder)!

beforeAll(async () => {
  packed = await (isLong ? packAll : packLibraries)(archives)
}, 240_000)
afterAll(() => rmSync(archives, { recursive: true, force: true }))

describe.each(isLong ? publishedFolders : libraryFolders)("%s", (folder) => {
  it("has a manifest for others, and nothing that is ours alone", async () => {
    const { tarball } = archiveOf(folder)
    const manifest: Manifest = JSON.parse(await readPacked(tarball, "package.json"))
    expect(JSON.stringify(manifest)).not.toMatch(/"(?:workspace|catalog):/)
    expect(JSON.stringify([manifest.exports, manifest.bin])).not.toMatch(/\/src\//)
    const files = (await must("tar", ["-tzf", tarball])).trim().split("\n").map((path) => path.replace("package/", ""))
    expect(files.filter((path) => /(?:^|\/)(?:test|node_modules|\.turbo)\/|tsbuildinfo|^tsconfig|\.env/.test(path))).toEqual([])
    expect(files).toEqual(expect.arrayContaining(["package.json", "README.md", "LICENSE"]))
    // A map leads a debugger to a source that is there.
    if (manifest.exports !== undefined) expect(files).toEqual(expect.arrayContaining(["dist/index.js", "dist/index.js.map", "dist/index.d.ts", "src/index.ts"]))
  })

  it("passes publint", async () => {
    const { tarball } = archiveOf(folder)
    const file = readFileSync(tarball)
    const { messages, pkg } = await publint({ pack: { tarball: file.buffer.slice(file.byteOffset, file.byteOffset + file.length) }, strict: true })
    expect(messages.map((message) => formatMessage(message, pkg!))).toEqual([])
  })

  it("has the right types for ESM and for bundlers", async () => {
    const analysis = await checkPackage(createPackageFromTarballData(new Uint8Array(readFileSync(archiveOf(folder).tarball))))
    // The command has no types: nobody imports it.
    if (analysis.types === false) return expect(folder).toBe("apps/cli")
    const ours = analysis.problems.filter((problem) => !("resolutionKind" in problem) || problem.resolutionKind === "node16-esm" || problem.resolutionKind === "bundler")
    expect(ours).toEqual([])
  })
})

it("all of them have one version, and get the next one together", () => {
  const { fixed } = JSON.parse(readFileSync(join(root, ".changeset/config.json"), "utf8")) as { readonly fixed: ReadonlyArray<ReadonlyArray<string>> }
  const manifests = publishedFolders.map((folder): Manifest => JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")))
  expect([...fixed[0]!].toSorted()).toEqual(manifests.map(({ name }) => name).toSorted())
  expect(new Set(manifests.map(({ version }) => version)).size).toBe(1)
})
