/** Processes of the bench. None outlives it, whatever fails. */
import { type ChildProcess, fork, spawn } from "node:child_process"
import { createServer } from "node:net"
import { fileURLToPath } from "node:url"
import { peakRssMbOf, statOf } from "./processes.ts"

const children = new Set<ChildProcess>()
process.on("exit", () => children.forEach((child) => void child.kill("SIGKILL")))

const kept = <C extends ChildProcess>(child: C): C => {
  children.add(child)
  child.once("close", () => children.delete(child))
  return child
}

/** Ends what a suite has left running. */
export const killChildren = (): void => children.forEach((child) => void child.kill("SIGKILL"))

/** Without settings of whoever runs the bench. */
export const cleanEnv = (): Record<string, string> => Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("PURSER_"))) as Record<string, string>

const quiet = "--disable-warning=ExperimentalWarning"

/** A file beside the module of this address. */
export const beside = (address: string, file: string): string => fileURLToPath(new URL(file, address))

/** A process that is spoken to in turns. */
export interface Side {
  readonly pid: number
  readonly send: (message: unknown) => void
  /** The next thing that it says. */
  readonly heard: <A>() => Promise<A>
  /** Says `end`, and waits until it has. */
  readonly end: () => Promise<void>
}

/** Starts one side of a comparison. */
export const openSide = (file: string, args: ReadonlyArray<string>): Side => {
  const child = kept(fork(file, args, { execArgv: [quiet], env: cleanEnv() }))
  const said: Array<unknown> = []
  let waiting: { readonly resolve: (message: unknown) => void; readonly reject: (error: Error) => void } | undefined
  let ended: Error | undefined
  child.on("message", (message) => {
    if (waiting === undefined) return void said.push(message)
    waiting.resolve(message)
    waiting = undefined
  })
  child.once("close", (code) => {
    ended = new Error(`${file} ${args[0] ?? ""} ended with ${code}`)
    waiting?.reject(ended)
  })
  return {
    pid: child.pid!,
    send: (message) => void child.send(message as string),
    heard: <A>() =>
      new Promise<A>((resolve, reject) => {
        if (said.length > 0) resolve(said.shift() as A)
        else if (ended !== undefined) reject(ended)
        else waiting = { resolve: resolve as (message: unknown) => void, reject }
      }),
    end: async () => {
      const closed = new Promise((resolve) => child.once("close", resolve))
      child.send("end")
      await closed
    }
  }
}

/** A program that serves. */
export interface Server {
  readonly pid: number
  /** What it said until it was ready. */
  readonly said: string
  readonly stop: () => Promise<void>
}

/** Starts a program and waits until it has said that it is ready, on standard output or error. */
export const startServer = (args: ReadonlyArray<string>, ready: RegExp, env: Readonly<Record<string, string>> = {}, cwd?: string) =>
  new Promise<Server>((resolve, reject) => {
    const child = kept(spawn(process.execPath, [quiet, ...args], { env: { ...cleanEnv(), ...env }, stdio: ["ignore", "pipe", "pipe"], ...(cwd === undefined ? {} : { cwd }) }))
    let said = ""
    const closed = new Promise<void>((done) => child.once("close", () => done()))
    const hear = (data: unknown) => {
      said += String(data)
      if (!ready.test(said)) return
      resolve({
        pid: child.pid!,
        said,
        stop: () => {
          child.kill("SIGTERM")
          const late = setTimeout(() => child.kill("SIGKILL"), 5000)
          return closed.finally(() => clearTimeout(late))
        }
      })
    }
    child.stdout.on("data", hear)
    child.stderr.on("data", hear)
    child.once("close", (code) => reject(new Error(`${args[0]} ended with ${code}: ${said.slice(-2000)}`)))
  })

const cpuMsOfEnded = () => statOf("self")?.cpuMsOfEnded ?? Number.NaN

/** A program's whole run. */
export interface ProgramRun {
  readonly said: string
  /** From its start to its end. */
  readonly tookMs: number
  /** Its processor time, and that of every other child of the bench that ended meanwhile: there should be none. */
  readonly cpuMs: number
  /** As it was seen some milliseconds before its end; not a number where it was over sooner. */
  readonly peakRssMb: number
}

/** Runs a program to its end. */
export const runProgram = (file: string, args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}, cwd?: string) =>
  new Promise<ProgramRun>((resolve, reject) => {
    const cpuMsBefore = cpuMsOfEnded()
    const beganMs = performance.now()
    const child = kept(spawn(file, args, { env: { ...cleanEnv(), ...env }, stdio: ["ignore", "pipe", "pipe"], ...(cwd === undefined ? {} : { cwd }) }))
    // What a process had at the most can only be read while it is there, and only grows.
    let peakRssMb = Number.NaN
    const watch = setInterval(() => {
      const seenMb = peakRssMbOf(child.pid!)
      if (seenMb > 0) peakRssMb = seenMb
    }, 20)
    let said = ""
    let complained = ""
    child.stdout.on("data", (data) => said += String(data))
    child.stderr.on("data", (data) => complained += String(data))
    child.once("error", (error) => {
      clearInterval(watch)
      reject(error)
    })
    child.once("close", (code) => {
      clearInterval(watch)
      if (code === 0) resolve({ said, tookMs: performance.now() - beganMs, cpuMs: cpuMsOfEnded() - cpuMsBefore, peakRssMb })
      else reject(new Error(`${file} ${args.join(" ")} ended with ${code}: ${complained.slice(-2000)}${said.slice(-500)}`))
    })
  })

/** The same of a Node program. */
export const runNode = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}, cwd?: string) => runProgram(process.execPath, [quiet, ...args], env, cwd)

/** A port that nobody has just now. */
export const freePort = () =>
  new Promise<number>((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0))
    })
  })
