/** Results as they are kept: one JSON for the docs, in which a suite stands as it was run last, and a line a run for its history. */
import { execFileSync } from "node:child_process"
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { arch, cpus, loadavg, release, totalmem } from "node:os"
import { dirname, join } from "node:path"
import { type Found, isMet } from "./Suite.ts"
import { spread } from "./spread.ts"

/** Where a suite ran. */
export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memoryMb: number
  readonly system: string
  readonly node: string
  readonly postgres: string
  /** Of this checkout; with a plus when code had been changed. */
  readonly revision: string
}

/** A suite that ran, or what kept it from running to its end. */
export interface Ran {
  readonly title: string
  readonly startedAt: string
  readonly tookSeconds: number
  readonly mode: "quick" | "full"
  /** As many as the suite made; as were asked for, where it did not come to its end. */
  readonly rounds: number
  /** Programs that wanted a core in the minute before, as the system counts them: what else was going on. */
  readonly loadBefore: number
  readonly machine: Machine
  readonly found: Found | undefined
  readonly failed: string | undefined
}

/** By the suite's name. */
export type Results = Readonly<Record<string, Ran>>

const git = (...args: ReadonlyArray<string>): string => {
  try {
    return execFileSync("git", args, { cwd: import.meta.dirname, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim()
  } catch {
    return ""
  }
}

export const machineOf = (postgres: string): Machine => ({
  cpu: cpus()[0]?.model.trim() ?? "unknown",
  cores: cpus().length,
  memoryMb: Math.round(totalmem() / 1_048_576),
  system: `${process.platform} ${release()} ${arch()}`,
  node: process.version,
  postgres,
  revision: `${git("rev-parse", "--short", "HEAD")}${git("status", "--porcelain", "--untracked-files=no", "--", ...["packages", "apps", "test/bench"].map((path) => `:/${path}`)) === "" ? "" : "+"}`
})

export const load = (): number => Math.round(loadavg()[0]! * 100) / 100

const rounded = (value: unknown): unknown => typeof value === "number" && Number.isFinite(value) ? Number(value.toPrecision(5)) : value

export const readResults = (file: string): Results => existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) as Results : {}

/** Writes what ran into the file, and beside it a line for its history. */
export const keepResults = (folder: string, ran: Results): Results => {
  const file = join(folder, "results.json")
  mkdirSync(dirname(file), { recursive: true })
  const text = `${JSON.stringify({ ...readResults(file), ...ran }, (_, value: unknown) => rounded(value), 1)}\n`
  writeFileSync(file, text)
  const history = Object.entries(ran).flatMap(([suite, { found, loadBefore, machine, mode, startedAt }]) =>
    (found?.goals ?? []).filter(({ values }) => values.length > 0).map((goal) =>
      JSON.stringify({ at: startedAt, revision: machine.revision, cores: machine.cores, mode, loadBefore, suite, goal: goal.what, median: rounded(spread(goal.values).median), met: isMet(goal) })))
  if (history.length > 0) appendFileSync(join(folder, "history.ndjson"), `${history.join("\n")}\n`)
  // As they are kept, so that pages made of them later say the same.
  return JSON.parse(text) as Results
}
