/** What an archive has to be before anybody installs it. */
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { publint } from "publint"
import { formatMessage } from "publint/utils"
import { expect } from "vitest"
import { filesOf, type Manifest, type Packed, readPacked } from "./published.ts"

/** A manifest for others, nothing that is ours alone, and a changelog that knows its version. */
export const expectForOthers = async ({ tarball }: Packed): Promise<void> => {
  const manifest: Manifest = JSON.parse(await readPacked(tarball, "package.json"))
  expect(JSON.stringify(manifest)).not.toMatch(/"(?:workspace|catalog):/)
  expect(JSON.stringify([manifest.exports, manifest.bin])).not.toMatch(/\/src\//)
  const files = await filesOf(tarball)
  expect(files.filter((path) => /(?:^|\/)(?:test|node_modules|\.turbo)\/|tsbuildinfo|^tsconfig|\.env/.test(path))).toEqual([])
  expect(files).toEqual(expect.arrayContaining(["package.json", "README.md", "CHANGELOG.md", "LICENSE"]))
  expect(await readPacked(tarball, "CHANGELOG.md")).toMatch(new RegExp(`^# ${manifest.name}\n\n## ${manifest.version.replaceAll(".", "\\.")}\n`))
  // A map leads a debugger to a source that is there.
  if (manifest.exports !== undefined) expect(files).toEqual(expect.arrayContaining(["dist/index.js", "dist/index.js.map", "dist/index.d.ts", "src/index.ts"]))
}

/** Links of its README that lead to nothing where it is installed. */
export const deadLinksOf = async ({ tarball }: Packed): Promise<ReadonlyArray<string>> => {
  const files = await filesOf(tarball)
  const prose = (await readPacked(tarball, "README.md")).replaceAll(/^```[^]*?^```$/gm, "").replaceAll(/`[^`\n]*`/g, "")
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!).filter((target) => !/^(?:https?:|#)/.test(target) && !files.includes(target.replace(/#.*$/, "")))
}

/** Effect's own, whose services are told apart by their names: a second copy of one does no harm, and most programs never name it. */
const ownServices = ["@effect/platform-node", "@effect/sql-pg"]

/** Packages of others that its declarations name (in the `dist` it was packed from) and that it does not leave to whoever installs it. */
export const notPeers = (dist: string, { peerDependencies = {} }: Manifest): ReadonlyArray<string> => {
  const typed = readdirSync(dist, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".d.ts"))
    .flatMap((path) => [...readFileSync(join(dist, path), "utf8").matchAll(/(?:from |import\()"((?:@[\w.-]+\/)?[\w-][\w.-]*)/g)].map(([, name]) => name!))
  return [...new Set(typed)].filter((name) => !name.startsWith("node:") && !name.startsWith("@purser/") && name !== "node" && !ownServices.includes(name) && peerDependencies[name] === undefined)
}

/** Nothing that publint knows of. */
export const expectLinted = async ({ tarball }: Packed): Promise<void> => {
  const file = readFileSync(tarball)
  const { messages, pkg } = await publint({ pack: { tarball: file.buffer.slice(file.byteOffset, file.byteOffset + file.length) }, strict: true })
  expect(messages.map((message) => formatMessage(message, pkg!))).toEqual([])
}

/** The right types for ESM and for bundlers. */
export const expectTyped = async ({ folder, tarball }: Packed): Promise<void> => {
  const analysis = await checkPackage(createPackageFromTarballData(new Uint8Array(readFileSync(tarball))))
  // The command has no types: nobody imports it.
  if (analysis.types === false) return expect(folder).toBe("apps/cli")
  const ours = analysis.problems.filter((problem) => !("resolutionKind" in problem) || problem.resolutionKind === "node16-esm" || problem.resolutionKind === "bundler")
  expect(ours).toEqual([])
}
