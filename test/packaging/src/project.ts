/** An empty project outside the workspace that installs the archives, and what runs in it. */
import { spawn } from "node:child_process"
import { cpSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { connect, createServer } from "node:net"
import { join } from "node:path"
import { type Ended, environment, must, type Packed, root, run, scratch } from "./published.ts"
import { type Shown, wantedBy } from "./readmes.ts"

/** A package manager: what it reads beside `package.json`, and how it installs. */
export interface Manager {
  readonly name: string
  /** Fields of `package.json` that hold packages of ours to the archives, since no registry has them. */
  readonly fields: (archives: Readonly<Record<string, string>>, wanted: ReadonlyArray<string>) => Record<string, unknown>
  readonly files: (archives: Readonly<Record<string, string>>, wanted: ReadonlyArray<string>) => Promise<Record<string, string>>
  readonly install: ReadonlyArray<string>
}

const none = async () => ({})
const registry = async () => (await must("npm", ["config", "get", "registry"])).trim()

/** npm, as it comes with Node. */
export const npm: Manager = {
  name: "npm",
  // It takes no other source for what the project itself names.
  fields: (archives, wanted) => ({ overrides: Object.fromEntries(Object.entries(archives).map(([name, file]) => [name, wanted.includes(name) ? `$${name}` : file])) }),
  files: none,
  install: ["npm", "install", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"]
}

/** What pnpm has to be told before it installs zeromq. */
export const allowBuilds = "allowBuilds: { zeromq: true }"

/** pnpm, the workspace's version. */
export const pnpm: Manager = {
  name: "pnpm",
  fields: () => ({}),
  files: async (archives, wanted) => ({
    "pnpm-workspace.yaml": [
      "overrides:", ...Object.entries(archives).map(([name, file]) => `  "${name}": "${file}"`),
      // The READMEs say so where they tell to install it, or what brings it.
      ...wanted.includes("zeromq") || wanted.includes("@purser/cli") ? [allowBuilds] : [], ""
    ].join("\n")
  }),
  install: ["pnpm", "install", "--no-frozen-lockfile", "--prefer-offline", "--reporter=append-only", "--loglevel=error"]
}

/** yarn, from a folder that has it: with `node_modules`, or as it is when nobody says so, without (Plug'n'Play). */
export const yarn = (program: string, linker: "node-modules" | "pnp"): Manager => ({
  name: `yarn (${linker})`,
  fields: (archives) => ({ resolutions: archives }),
  files: async () => ({
    ".yarnrc.yml": `nodeLinker: ${linker}\nenableTelemetry: false\nenableImmutableInstalls: false\nnpmRegistryServer: "${await registry()}"\nunsafeHttpWhitelist: ["*"]\n`,
    "yarn.lock": ""
  }),
  install: ["node", program, "install"]
})

const catalog = (name: string): string => {
  const version = new RegExp(`^  "?${name.replaceAll("/", "\\/")}"?: (\\d\\S*)$`, "m").exec(readFileSync(join(root, "pnpm-workspace.yaml"), "utf8"))?.[1]
  if (version === undefined) throw new Error(`${name} is not in the catalog`)
  return version
}

// What the READMEs tell to install, all of it.
const beside = ["@effect/platform-node", "@effect/vitest", "@electric-sql/pglite", "@types/node", "effect", "stripe", "vitest", "zeromq"]

/** Makes a project that wants these packages, and installs into it; answers its folder. Ours come from the archives, also those that others ask for. */
const project = async (manager: Manager, packed: ReadonlyArray<Packed>, wanted: ReadonlyArray<string>): Promise<string> => {
  const folder = scratch(manager.name)
  const archives = Object.fromEntries(packed.map(({ name, tarball }) => [name, `file:${tarball}`]))
  const manifest = {
    name: "a-stranger",
    version: "1.0.0",
    private: true,
    type: "module",
    dependencies: Object.fromEntries(wanted.map((name) => [name, archives[name] ?? catalog(name)])),
    ...manager.fields(archives, wanted)
  }
  const files = { ...await manager.files(archives, wanted), "package.json": JSON.stringify(manifest, null, 2) }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  const [command, ...args] = manager.install
  await must(command!, args, { cwd: folder })
  return folder
}

/** A project with everything that is published, and with the programs of `consumer`; answers its folder. */
export const install = async (manager: Manager, packed: ReadonlyArray<Packed>): Promise<string> => {
  const folder = await project(manager, packed, [...packed.map(({ name }) => name), ...beside])
  cpSync(join(root, "test/packaging/consumer"), folder, { recursive: true })
  return folder
}

const fileOf = ({ program }: Shown): string => program.includes("@effect/vitest") ? "shown.test.ts" : "shown.ts"

/** A project with what a page tells to install before a program, and with the program; answers its folder. */
export const installShown = async (manager: Manager, packed: ReadonlyArray<Packed>, shown: Shown): Promise<string> => {
  const folder = await project(manager, packed, wantedBy(shown))
  // A program that hands over to a server of the reader's is at its end there.
  writeFileSync(join(folder, fileOf(shown)), shown.program.includes("webHandler") ? `${shown.program}\nprocess.exit(typeof handle === "function" ? 0 : 1)\n` : shown.program)
  return folder
}

/** Runs it: a test by vitest, what serves until its port is open, all else to its end. */
export const runShown = async (folder: string, node: string, env: Record<string, string>, shown: Shown): Promise<Ended> => {
  const options = { cwd: folder, env: { ...inProject(folder, node), ...env } }
  if (shown.program.includes("@effect/vitest")) return run("vitest", ["run"], options)
  const args = ["--disable-warning=ExperimentalWarning", fileOf(shown)]
  if (!shown.program.includes("Layer.launch")) return run(node, args, options)
  const port = await freePort()
  const child = spawn(node, args, { ...options, env: { ...options.env, PURSER_ENDPOINT: `tcp://127.0.0.1:${port}` }, stdio: ["ignore", "pipe", "pipe"] })
  let said = ""
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => said += String(data))
  const open = async (): Promise<boolean> => {
    while (child.exitCode === null) if (await isOpen(port)) return true
    return false
  }
  const served = await open()
  child.kill("SIGTERM")
  return { status: served ? 0 : child.exitCode, stdout: "", stderr: said }
}

/** A `node` and the project's commands, before all others. */
const inProject = (folder: string, node: string): Record<string, string> => environment([join(node, ".."), join(folder, "node_modules/.bin")])

/** Runs a program of the project; answers the JSON that it prints. */
export const runProgram = async (folder: string, node: string, file: "program.mjs" | "without.mjs" | "old.mjs"): Promise<unknown> =>
  JSON.parse(await must(node, [file], { cwd: folder, env: inProject(folder, node) }))

const strict = ["--noEmit", "--strict", "--target", "es2024", "--types", "node"]

/** Compiles the program that a page shows; answers what there is to say about it. */
export const compileShown = async (folder: string, shown: Shown): Promise<string> =>
  (await run("tsc", [fileOf(shown), ...strict, "--module", "nodenext", "--skipLibCheck"], { cwd: folder })).stdout

/** Compiles the project's TypeScript as the strictest user does; answers what there is to say about it and about our declarations. */
export const compile = async (folder: string, resolution: "nodenext" | "bundler"): Promise<string> => {
  const module = resolution === "bundler" ? "esnext" : resolution
  const { stdout } = await run("tsc", ["worker.ts", ...strict, "--module", module, "--moduleResolution", resolution, "--skipLibCheck", "false"], { cwd: folder })
  // Declarations of others name packages that are optional to them.
  return stdout.split("\n").filter((line) => line.startsWith("worker.ts") || line.includes("@purser/")).join("\n")
}

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0))
    })
  })

/** Whether somebody listens at a port of this machine. A refusal comes from the system at once. */
const isOpen = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => resolve(true)).on("error", () => setTimeout(() => resolve(false), 50))
    socket.on("connect", () => socket.destroy())
  })

/** Runs the installed `purser` with these arguments. */
export const purser = (folder: string, node: string, args: ReadonlyArray<string>, env: Record<string, string> = {}): Promise<Ended> =>
  run("purser", args, { cwd: folder, env: { ...inProject(folder, node), ...env } })

/** Starts a command that serves, uses it once it has said where, and stops it. */
const whileServing = async <A>(folder: string, node: string, args: ReadonlyArray<string>, env: Record<string, string>, use: () => Promise<A>): Promise<A> => {
  const child = spawn("purser", args, { cwd: folder, env: { ...inProject(folder, node), ...env }, stdio: ["ignore", "pipe", "pipe"] })
  let said = ""
  try {
    await new Promise<void>((resolve, reject) => {
      const hear = (data: Buffer) => {
        said += String(data)
        if (said.includes("http://127.0.0.1:")) resolve()
      }
      child.stdout.on("data", hear)
      child.stderr.on("data", hear)
      child.once("exit", (code) => reject(new Error(`purser ${args[0]} ended with ${code}: ${said}`)))
    })
    return await use()
  } finally {
    child.kill("SIGTERM")
  }
}

/** A folder for a database. */
const dataFolder = (folder: string): string => mkdtempSync(join(folder, "data-"))

/** `purser sim` and two runs of a file on the embedded database; answers the runs, and the simulator's books. */
export const bill = async (folder: string, node: string): Promise<{ readonly first: Ended; readonly again: Ended; readonly books: ReadonlyArray<{ readonly payments: number }> }> => {
  const port = await freePort()
  return whileServing(folder, node, ["sim", "--port", String(port)], {}, async () => {
    const url = `http://127.0.0.1:${port}`
    const env = { PURSER_STRIPE_URL: url, PURSER_STRIPE_KEY: "sk_test_sim", PURSER_DATA_DIR: dataFolder(folder) }
    const args = ["run", "invoices.csv", "--yes", "--json", "--allow-period", "2026-07"]
    const first = await purser(folder, node, args, env)
    const again = await purser(folder, node, args, env)
    const books = await fetch(`${url}/_sim/books`).then((response) => response.json()) as ReadonlyArray<{ readonly payments: number }>
    return { first, again, books }
  })
}

/** The page of `purser console`, which lies beside the bundle. */
export const consolePage = async (folder: string, node: string): Promise<string> => {
  const port = await freePort()
  const env = { PURSER_DATA_DIR: dataFolder(folder), PURSER_STRIPE_KEY: "sk_test_sim", PURSER_CONSOLE_PORT: String(port) }
  return whileServing(folder, node, ["console"], env, () => fetch(`http://127.0.0.1:${port}/`).then((response) => response.text()))
}

/** What `purser proxy` answers to a key that it does not know. */
export const proxyAnswer = async (folder: string, node: string): Promise<string> => {
  const port = await freePort()
  const env = { PURSER_PROXY_DATA_DIR: dataFolder(folder), PURSER_PROXY_STRIPE_KEY: "sk_test_sim" }
  return whileServing(folder, node, ["proxy", "--port", String(port)], env, () =>
    fetch(`http://127.0.0.1:${port}/v1/charges`, { method: "POST", headers: { authorization: "Bearer vk_unknown" } }).then((response) => response.text()))
}
