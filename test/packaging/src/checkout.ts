/** A fresh checkout of the workspace: its sources in a folder of their own, with its own `node_modules`, where nothing was ever built. */
import { cpSync, lstatSync, readdirSync, symlinkSync } from "node:fs"
import { basename, join } from "node:path"
import { must, root, scratch, toolsOf } from "./published.ts"

const made = new Set(["node_modules", "dist", "site", ".turbo", ".tools", ".git", ".purser", ".purser-proxy", ".stryker", "__pycache__", "receipts"])

/** Makes one; answers its folder. Packages come from the store of this machine, which has them since the workspace was set up. */
export const freshCheckout = async (): Promise<string> => {
  const folder = scratch("checkout")
  for (const entry of readdirSync(root).filter((name) => !made.has(name))) {
    cpSync(join(root, entry), join(folder, entry), { recursive: true, filter: (path) => !made.has(basename(path)) && !lstatSync(path).isSocket() })
  }
  symlinkSync(join(root, ".tools"), join(folder, ".tools"))
  await must("pnpm", ["install", "--frozen-lockfile", "--prefer-offline", "--reporter=append-only", "--loglevel=error"], { cwd: folder, env: toolsOf(folder) })
  return folder
}
