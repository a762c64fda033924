/**
 * Makes the archive from which new embedded databases start in a fraction of a second. Without it they start too, in
 * seconds. Run it once after installing; it does nothing when the archive is there. `buildSeed.ts FOLDER` lays a copy
 * into a folder of what is published.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect } from "effect"
import { copyFileSync, mkdirSync } from "node:fs"
import { basename, join } from "node:path"
import { ensureSeed } from "../src/internal/pglite/seed.ts"

const target = process.argv[2]
const ship = (file: string) =>
  Effect.sync(() => {
    if (target === undefined) return
    mkdirSync(target, { recursive: true })
    copyFileSync(file, join(target, basename(file)))
  })

NodeRuntime.runMain(ensureSeed.pipe(Effect.tap(ship), Effect.flatMap((file) => Console.log(`embedded database seed: ${file}`))))
