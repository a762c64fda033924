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
  readonly engines?: Readonly<Record<string, string>>
  readonly exports?: Readonly<Record<string, unknown>>
  readonly bin?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
}

/** A package in its archive. */
export interface Packed {
  readonly name: string
  readonly folder: string
  readonly tarball: string
}

/** How a program ended. */
export interface Ended {
  readonly status: unknown
  readonly stdout: string
  readonly stderr: string
}

/** The environment without settings of ours and without what a package manager tells its scripts, but for where packages come from; these folders are looked in first. */
export const environment = (path: ReadonlyArray<string>): Record<string, string> => ({
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:PURSER_|npm_(?!config_(?:registry|cache|userconfig|.*proxy)$)|NODE_OPTIONS|VITEST|INIT_CWD)/i.test(name))) as Record<string, string>,
  PATH: [...path, process.env["PATH"] ?? ""].join(delimiter)
})

/** The same with the tools of a checkout. */
export const toolsOf = (checkout: string): Record<string, string> => environment([join(checkout, "node_modules/.bin"), join(checkout, ".tools/node_modules/.bin")])

/** Runs a program to its end. */
export const run = (command: string, args: ReadonlyArray<string>, options: { readonly cwd?: string; readonly env?: Record<string, string> } = {}): Promise<Ended> =>
  new Promise((resolve) => {
    execFile(command, args, { cwd: options.cwd ?? root, env: options.env ?? toolsOf(root), maxBuffer: 1 << 26, shell: process.platform === "win32" }, (error, stdout, stderr) =>
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

/** Files of an archive, by their paths under the folder `package/`. */
export const filesOf = async (tarball: string): Promise<ReadonlyArray<string>> =>
  (await must("tar", ["-tzf", tarball])).trim().split("\n").filter((path) => !path.endsWith("/")).map((path) => path.replace("package/", "")).toSorted()

/** What a package's manifest says in the workspace. */
export const manifestOf = (folder: string): Manifest => JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"))

/** Folders of what is published. */
export const publishedFolders: ReadonlyArray<string> = ["packages", "apps"].flatMap((parent) =>
  readdirSync(join(root, parent)).map((name) => `${parent}/${name}`)).filter((folder) => manifestOf(folder).private !== true)

/** Builds all of a checkout, and packs all into `destination`. */
export const packAll = async (checkout: string, destination: string): Promise<ReadonlyArray<Packed>> => {
  const inCheckout = { cwd: checkout, env: toolsOf(checkout) }
  await must("pnpm", ["run", "build"], inCheckout)
  const filters = publishedFolders.flatMap((folder) => ["--filter", `./${folder}`])
  await must("pnpm", ["--recursive", ...filters, "pack", "--pack-destination", destination], inCheckout)
  return publishedFolders.map((folder) => {
    const { name, version } = manifestOf(folder)
    return { name, folder, tarball: join(destination, `${name.replace("@", "").replace("/", "-")}-${version}.tgz`) }
  })
}

/** `npm pack` in a package's folder of a checkout; answers the archive. */
export const packWithNpm = async (checkout: string, folder: string, destination: string): Promise<string> => {
  const printed = await must("npm", ["pack", "--json", "--pack-destination", destination], { cwd: join(checkout, folder), env: toolsOf(checkout) })
  const [made] = JSON.parse(printed) as ReadonlyArray<{ readonly filename: string }>
  return join(destination, made!.filename)
}
