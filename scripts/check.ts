/**
 * Everything that a change must pass: types, Effect diagnostics, lint, package boundaries, tests and examples. Ends with
 * `N passed, N failed`; each check and each test counts as one.
 */
import { spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const only = process.argv.slice(2)
let passed = 0
let failed = 0

const step = (name: string, command: string, args: ReadonlyArray<string>): boolean => {
  if (only.length > 0 && !only.includes(name)) return true
  const started = Date.now()
  const { status } = spawnSync(command, args, { stdio: ["ignore", "inherit", "inherit"], shell: process.platform === "win32" })
  const ok = status === 0
  console.log(`${ok ? "ok  " : "FAIL"} ${name} (${((Date.now() - started) / 1000).toFixed(1)} s)`)
  if (ok) passed += 1
  else failed += 1
  return ok
}

const projects = ["examples", ...["packages", "apps", "test"].flatMap((folder) =>
  existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : []
)]

step("types", "tsc", ["-b"])
for (const project of projects) {
  for (const config of ["tsconfig.test.json", "tsconfig.json"]) {
    const file = join(project, config)
    if (!existsSync(file)) continue
    // A test project contains the sources too: one pass over both.
    step(`types ${project}`, "tsc", ["-p", file, "--noEmit"])
    step(`effect ${project}`, "effect-tsgo", ["diagnostics", "--strict", "--lspconfig", "{}", "--project", file])
    break
  }
}
step("lint", "oxlint", ["--deny-warnings"])
step("boundaries", "turbo", ["boundaries", "--no-color"])

if (only.length === 0 || only.includes("tests")) {
  const folder = mkdtempSync(join(tmpdir(), "purser-check-"))
  const report = join(folder, "vitest.json")
  const { status } = spawnSync("vitest", ["run", "--reporter=default", "--reporter=json", `--outputFile.json=${report}`], {
    stdio: ["ignore", "inherit", "inherit"],
    shell: process.platform === "win32"
  })
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

console.log(`${passed} passed, ${failed} failed`)
process.exit(failed === 0 && passed > 0 ? 0 : 1)
