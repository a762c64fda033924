/** The published packages: built and packed as a release does it. */
import { execFile } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"

/** The folder that holds the workspace. */
export const root = join(import.meta.dirname, "../../..")

/** What a published `package.json` says. */
export interface Manifest {
  readonly name: string
  readonly version: string
  readonly private?: boolean
  readonly exports?: Readonly<Record<string, unknown>>
  readonly bin?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

/** A package in its archive. */
export interface Packed {
  readonly name: string
  readonly folder: string
  readonly tarball: string
}

const tools = [join(root, "node_modules/.bin"), join(root, ".tools/node_modules/.bin")]

/** How a program ended. */
export interface Ended {
  readonly status: unknown
  readonly stdout: string
  readonly stderr: string
}

/** The environment without settings of ours and without what a package manager tells its scripts, but for where packages come from; the workspace's tools are found first. */
export const environment = (path: ReadonlyArray<string> = tools): Record<string, string> => ({
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:PURSER_|npm_(?!config_(?:registry|cache|userconfig|.*proxy)$)|NODE_OPTIONS|VITEST|INIT_CWD)/i.test(name))) as Record<string, string>,
  PATH: [...path, process.env["PATH"] ?? ""].join(delimiter)
})

/** Runs a program to its end. */
export const run = (command: string, args: ReadonlyArray<string>, options: { readonly cwd?: string; readonly env?: Record<string, string> } = {}): Promise<Ended> =>
  new Promise((resolve) => {
    execFile(command, args, { cwd: options.cwd ?? root, env: options.env ?? environment(), maxBuffer: 1 << 26, shell: process.platform === "win32" }, (error, stdout, stderr) =>
      resolve({ status: error === null ? 0 : error.code ?? error.signal, stdout, stderr }))
  })

/** Runs a program that must succeed; answers what it printed. */
export const must = async (command: string, args: ReadonlyArray<string>, options: Parameters<typeof run>[2] = {}): Promise<string> => {
  const { status, stderr, stdout } = await run(command, args, options)
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${String(status)}\n${stdout}\n${stderr}`)
  return stdout
}

/** A folder of its own outside the workspace. */
export const scratch = (name: string): string => mkdtempSync(join(tmpdir(), `purser-packaging-${name}-`))

/** Text of a file in an archive, under the folder `package/`. */
export const readPacked = (tarball: string, path: string): Promise<string> => must("tar", ["-xzOf", tarball, `package/${path}`])

/** Folders of what is published. */
export const publishedFolders: ReadonlyArray<string> = ["packages", "apps"].flatMap((parent) =>
  readdirSync(join(root, parent)).map((name) => `${parent}/${name}`)).filter((folder) => {
    const manifest: Manifest = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"))
    return manifest.private !== true
  })

/** Folders of the libraries: `tsc` alone builds them, but for a file or two that no check of an archive looks at. */
export const libraryFolders: ReadonlyArray<string> = publishedFolders.filter((folder) => folder.startsWith("packages/"))

const pack = async (folders: ReadonlyArray<string>, destination: string): Promise<ReadonlyArray<Packed>> => {
  const packed: Array<Packed> = []
  for (const folder of folders) {
    const { name, filename } = JSON.parse(await must("pnpm", ["pack", "--json", "--pack-destination", destination], { cwd: join(root, folder) })) as {
      readonly name: string
      readonly filename: string
    }
    packed.push({ name, folder, tarball: filename })
  }
  return packed
}

/** Builds all, and packs all into `destination`. */
export const packAll = async (destination: string): Promise<ReadonlyArray<Packed>> => {
  await must("turbo", ["run", "build", "--output-logs=errors-only", "--ui=stream"])
  return pack(publishedFolders, destination)
}

/** Compiles all, and packs the libraries into `destination`. */
export const packLibraries = async (destination: string): Promise<ReadonlyArray<Packed>> => {
  await must("tsc", ["-b"])
  return pack(libraryFolders, destination)
}
