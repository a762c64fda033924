/**
 * Vitest set-up: the `purser` command of the tests, with their fault points, as one program. Tests start it hundreds of
 * times. What is bundled is the workspace's sources, read anew for each run.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { bundleCommand } from "../../scripts/bundleCommand.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))

/** Processes that end are still writing what they have compiled. */
const remove = async (folder: string, tries = 50): Promise<void> => {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch (error) {
    if (tries === 0) throw error
    await setTimeout(100)
    return remove(folder, tries - 1)
  }
}

export default async function setup(): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(root, "node_modules/.purser-command-"))
  await bundleCommand({ entry: join(root, "apps/cli/test/support/purserWithFaults.ts"), folder, home: "workspace" })
  // The workers are started after this and inherit the environment, and so does what they start.
  process.env["PURSER_TEST_COMMAND"] = join(folder, "purserWithFaults.js")
  // What one process has compiled, or stripped of its types, no other of this run does again.
  process.env["NODE_COMPILE_CACHE"] ??= join(folder, "compiled")
  return () => remove(folder)
}
