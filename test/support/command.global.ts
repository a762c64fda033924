/**
 * Vitest set-up: the `purser` command of the tests, with their fault points, as one program. Tests start it hundreds of
 * times. What is bundled is the workspace's sources, read anew for each run.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { bundleCommand } from "../../scripts/bundleCommand.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))

export default async function setup(): Promise<() => void> {
  const folder = mkdtempSync(join(root, "node_modules/.purser-command-"))
  await bundleCommand({ entry: join(root, "apps/cli/test/support/purserWithFaults.ts"), folder, home: "workspace" })
  // The workers are started after this and inherit the environment.
  process.env["PURSER_TEST_COMMAND"] = join(folder, "purserWithFaults.js")
  return () => rmSync(folder, { recursive: true, force: true })
}
