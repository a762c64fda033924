/**
 * Makes the archive from which new embedded databases start in a fraction of a second. Without it they start too, in
 * seconds. Run it once after installing; it does nothing when the archive is there.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect } from "effect"
import { ensureSeed } from "../src/internal/pglite/seed.ts"

NodeRuntime.runMain(Effect.flatMap(ensureSeed, (file) => Console.log(`embedded database seed: ${file}`)))
