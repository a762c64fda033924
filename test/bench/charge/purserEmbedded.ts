/** Purser on the embedded database, with fsync, in a folder of its own. */
import { Database } from "@purser/postgres"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Program } from "./jobs.ts"
import { openPurser } from "./purser.ts"

export const program: Program = {
  name: "purser, embedded",
  open: async (setting) => {
    const dataDir = mkdtempSync(join(tmpdir(), "purser-bench-"))
    const { charge, close, counts } = await openPurser(setting, Database.layerEmbedded({ dataDir }))
    return {
      charge,
      counts,
      close: async () => {
        await close()
        rmSync(dataDir, { recursive: true, force: true })
      }
    }
  }
}
