/**
 * `node scripts/withCommand.ts PROGRAM [arguments]`: bundles the `purser` command of the tests, with their fault points, from the sources
 * as they are now, and runs a program that starts it many times.
 */
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { join } from "node:path"
import { bundleCommand } from "./bundleCommand.ts"

const root = join(import.meta.dirname, "..")
const folder = mkdtempSync(join(root, "node_modules/.purser-command-"))
const [program, ...args] = process.argv.slice(2)
await bundleCommand({ entry: join(root, "apps/cli/test/support/purserWithFaults.ts"), folder, home: "workspace" })
const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", program!, ...args], {
  stdio: "inherit",
  env: { ...process.env, PURSER_TEST_COMMAND: join(folder, "purserWithFaults.js"), NODE_COMPILE_CACHE: join(folder, "compiled") }
})
const pass = (signal: NodeJS.Signals) => void child.kill(signal)
process.on("SIGINT", pass).on("SIGTERM", pass)
child.on("close", (code) => {
  rmSync(folder, { recursive: true, force: true })
  process.exitCode = code ?? 1
})
