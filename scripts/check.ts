/**
 * What a change must pass: types and Effect diagnostics, lint, package boundaries, nothing unused, no known hole in what is installed; with
 * `--tests` all tests too. Names (`check.ts lint types`) pick single checks. Ends with `N passed, N failed`; each check and each test counts
 * as one. A check that could not be made says so and counts as neither.
 */
import { execFileSync, spawn, spawnSync } from "node:child_process"
import { createWriteStream, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

interface Check {
  readonly name: string
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** The status that says that nothing is known. */
  readonly unknownStatus?: number
}

const shell = process.platform === "win32"
const effectTsc = execFileSync("effect-tsgo", ["get-exe-path"], { encoding: "utf8", shell }).trim()

const checks: ReadonlyArray<Check> = [
  // One program over every file of the workspace, so that each is looked at once: types, and what Effect's compiler knows beside them.
  // More than two checkers each look at the same types again, for a quarter more of the processor.
  { name: "types", command: effectTsc, args: ["-p", "tsconfig.check.json", "--checkers", "2"] },
  // The page alone knows a browser.
  { name: "page", command: effectTsc, args: ["-p", "apps/console/tsconfig.web.json"] },
  // What is published, with the declarations that packages see of each other.
  { name: "build", command: "tsc", args: ["-b"] },
  { name: "lint", command: "oxlint", args: ["--deny-warnings"] },
  { name: "boundaries", command: "turbo", args: ["boundaries", "--no-color"] },
  { name: "unused", command: "knip", args: ["--no-progress", "--no-config-hints"] },
  // A machine without a way to the registry must be able to pass; that nothing is known is no pass either.
  { name: "audit", command: process.execPath, args: ["--disable-warning=ExperimentalWarning", join(import.meta.dirname, "auditDependencies.ts")], unknownStatus: 2 }
]

const wanted = process.argv.slice(2).filter((argument) => !argument.startsWith("--"))
const withTests = process.argv.includes("--tests")
let passed = 0
let failed = 0
let notMade = 0

const run = ({ args, command, name, unknownStatus }: Check): Promise<void> =>
  new Promise((resolve) => {
    const started = Date.now()
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], shell })
    let output = ""
    child.stdout.on("data", (data) => output += String(data))
    child.stderr.on("data", (data) => output += String(data))
    child.on("error", (error) => output += error.message)
    child.on("close", (status) => {
      const ok = status === 0
      const isUnknown = unknownStatus !== undefined && status === unknownStatus
      if (ok) passed += 1
      else if (isUnknown) notMade += 1
      else failed += 1
      console.log(`${ok ? "" : output}${ok ? "ok  " : isUnknown ? "NOT MADE" : "FAIL"} ${name} (${((Date.now() - started) / 1000).toFixed(1)} s)`)
      resolve()
    })
  })

const unknown = wanted.filter((name) => !checks.some((check) => check.name === name))
if (unknown.length > 0) {
  console.error(`no check is called ${unknown.join(", ")}; there are ${checks.map(({ name }) => name).join(", ")}`)
  process.exit(1)
}

const queue = checks.filter(({ name }) => wanted.length === 0 || wanted.includes(name))
const next = async (): Promise<void> => {
  for (let check = queue.shift(); check !== undefined; check = queue.shift()) await run(check)
}
await Promise.all([next(), next()])

if (withTests) {
  const folder = mkdtempSync(join(tmpdir(), "purser-check-"))
  const report = join(folder, "vitest.json")
  const output = join(folder, "output.txt")
  const status = await new Promise<number | null>((resolve) => {
    const child = spawn("vitest", ["run", "--reporter=default", "--reporter=json", `--outputFile.json=${report}`], {
      stdio: ["ignore", "pipe", "pipe"],
      env: process.stdout.isTTY ? { FORCE_COLOR: "1", ...process.env } : process.env,
      shell
    })
    const kept = createWriteStream(output)
    for (const [from, to] of [[child.stdout, process.stdout], [child.stderr, process.stderr]] as const) {
      from.pipe(to, { end: false })
      from.pipe(kept, { end: false })
    }
    child.on("close", (code) => kept.end(() => resolve(code)))
    child.on("error", () => resolve(null))
  })
  // Keys that tests plant are in nothing that the run has written.
  const written = [output, report].filter(existsSync)
  const { status: found } = spawnSync(process.execPath, ["--disable-warning=ExperimentalWarning", join(import.meta.dirname, "findSecrets.ts"), ...written], { stdio: ["ignore", "inherit", "inherit"] })
  if (found === 0) passed += 1
  else failed += 1
  if (existsSync(report)) {
    const result = JSON.parse(readFileSync(report, "utf8")) as {
      readonly numPassedTests: number
      readonly numFailedTests: number
      readonly numPendingTests: number
      readonly numTotalTests: number
      readonly numFailedTestSuites: number
    }
    passed += result.numPassedTests
    failed += result.numFailedTests
    // A skipped test proves nothing: it counts as failed, and so does a file that could not be loaded.
    failed += result.numPendingTests
    if (status !== 0 && result.numFailedTests === 0) failed += Math.max(1, result.numFailedTestSuites)
  } else {
    failed += 1
  }
  rmSync(folder, { recursive: true, force: true })
}

if (notMade > 0) console.log(`${notMade} not made: nothing is known about that`)
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed === 0 && passed + notMade > 0 ? 0 : 1)
