/** Runs the programs of a PostgreSQL installation as child processes, and ends servers whose starter was killed. */
import { Effect, Schema } from "effect"
import { execFileSync, spawn, type ChildProcess } from "node:child_process"
import * as Fs from "node:fs"
import * as Net from "node:net"
import * as Path from "node:path"
import type { Account } from "./postgresBinaries.ts"

/** A program ended too early, or could not be started. */
export class ProcessFailed extends Schema.TaggedError<ProcessFailed>("@purser/postgres/PostgresProcess/ProcessFailed")("ProcessFailed", {
  detail: Schema.String
}) {}

/** What to run, and as whom. */
export interface Program {
  readonly file: string
  readonly args: ReadonlyArray<string>
  readonly account: Account | undefined
}

/** Enough of a program's output to explain a failure. */
const outputLimit = 4000

// PGDATA, PGPORT and the like of the caller's shell must not reach the server; its words are read, so they are English.
const environment = (): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("PG") && !name.startsWith("LC_"))),
  LC_ALL: "C"
})

const start = (program: Program): ChildProcess =>
  spawn(program.file, [...program.args], {
    cwd: Path.parse(process.cwd()).root,
    env: environment(),
    stdio: ["ignore", "pipe", "pipe"],
    ...program.account
  })

/** Settles when the program ends, or as soon as its output contains `ready`. */
const watch = (child: ChildProcess, name: string, ready: string | undefined) =>
  Effect.callback<void, ProcessFailed>((resume) => {
    let output = ""
    // The output is read to the end, for a full pipe would stop the server.
    const read = (chunk: Buffer) => {
      output = (output + chunk.toString("utf8")).slice(-outputLimit)
      if (ready !== undefined && output.includes(ready)) resume(Effect.void)
    }
    child.stdout?.on("data", read)
    child.stderr?.on("data", read)
    child.once("error", (cause) => resume(Effect.fail(new ProcessFailed({ detail: `${name}: ${cause.message}` }))))
    child.once("exit", (code, signal) =>
      resume(
        code === 0 && ready === undefined
          ? Effect.void
          : Effect.fail(new ProcessFailed({ detail: `${name} ended with ${signal ?? code}: ${output.trim()}` }))
      ))
  })

/** Runs a program to its end. */
export const runProgram = (program: Program): Effect.Effect<void, ProcessFailed> =>
  Effect.suspend(() => watch(start(program), Path.basename(program.file), undefined))

const stop = (child: ChildProcess): Effect.Effect<void> =>
  Effect.callback((resume) => {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return resume(Effect.void)
    child.once("exit", () => resume(Effect.void))
    // SIGINT is PostgreSQL's fast shutdown: open connections are ended.
    child.kill(process.platform === "win32" ? "SIGKILL" : "SIGINT")
  })

/** A server that runs until the scope closes; answers once it says `ready`. */
export const runServer = Effect.fnUntraced(function*(program: Program, ready: string) {
  const child = yield* Effect.acquireRelease(Effect.sync(() => start(program)), stop)
  const killAtExit = () => child.kill("SIGKILL")
  yield* Effect.acquireRelease(
    Effect.sync(() => process.once("exit", killAtExit)),
    () => Effect.sync(() => process.off("exit", killAtExit))
  )
  yield* watch(child, Path.basename(program.file), ready)
})

/** A TCP port of this machine that is free now. */
export const freePort = Effect.callback<number, ProcessFailed>((resume) => {
  const server = Net.createServer()
  server.once("error", (cause) => resume(Effect.fail(new ProcessFailed({ detail: cause.message }))))
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    server.close(() => resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0)))
  })
})

const commandLine = (pid: number): string =>
  Fs.existsSync("/proc/self/cmdline")
    ? Fs.readFileSync(`/proc/${pid}/cmdline`, "utf8")
    : execFileSync("ps", ["-p", String(pid), "-o", "args="], { encoding: "utf8" })

/** Ends the server of a data folder that nobody looks after any more. */
export const killOrphan = (dataFolder: string): Effect.Effect<void> =>
  Effect.ignore(Effect.try(() => {
    const pid = Number(Fs.readFileSync(Path.join(dataFolder, "postmaster.pid"), "utf8").split("\n")[0])
    // The number may belong to another program by now.
    if (pid > 1 && commandLine(pid).includes(dataFolder)) process.kill(pid, "SIGQUIT")
  }))
