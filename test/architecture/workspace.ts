/** The workspace as it lies on the disk: its packages, and their files as text. It judges nothing. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** One file; `path` is relative to the root, with forward slashes. */
export interface SourceFile {
  readonly path: string
  readonly text: string
}

/** What a `package.json` says. */
export interface Manifest {
  readonly name: string
  readonly version: string
  readonly private?: boolean
  readonly exports?: Readonly<Record<string, unknown>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

/** One package of the workspace. `folder` is relative to the root, `packages/core`. */
export interface Package {
  readonly folder: string
  readonly manifest: Manifest
  readonly files: ReadonlyArray<SourceFile>
}

/** The folder that holds the workspace. */
export const root = join(import.meta.dirname, "../..")

/** Text of a file by its path from the root. */
export const readText = (path: string): string => readFileSync(join(root, path), "utf8")

const ignored = new Set(["node_modules", "dist", "fixtures", ".turbo"])

// By hand, since Node's own recursive reading follows links, and packages link to each other in node_modules.
const sourcesIn = (folder: string): ReadonlyArray<SourceFile> =>
  readdirSync(join(root, folder), { withFileTypes: true }).filter(({ name }) => !ignored.has(name)).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) return sourcesIn(path)
    return entry.isFile() && /\.m?ts$/.test(entry.name) ? [{ path, text: readText(path) }] : []
  })

/** Folders with a `package.json` under these, `["packages", "apps"]`; `.` is the root. */
export const packageFolders = (parents: ReadonlyArray<string>): ReadonlyArray<string> =>
  parents.flatMap((parent) =>
    readdirSync(join(root, parent)).filter((name) => !ignored.has(name) && !name.startsWith(".")).map((name) => parent === "." ? name : `${parent}/${name}`).filter((folder) => existsSync(join(root, folder, "package.json")))
  ).toSorted()

/** Reads a package whole. */
export const readPackage = (folder: string): Package => {
  const manifest: Manifest = JSON.parse(readText(`${folder}/package.json`))
  return { folder, manifest, files: sourcesIn(folder) }
}

/** True for the files of a package that are published. */
export const isSource = ({ path }: SourceFile): boolean => /^(?:packages|apps)\/[^/]+\/src\//.test(path)
