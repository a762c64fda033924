import { setFlagsFromString } from "node:v8"
import { program } from "./Cli.ts"
import { launch } from "./launch.ts"

// What belongs to a charge outlives a collection of young objects, since its call takes longer. V8 makes such objects as old ones from then on, and
// they stay until it looks through all of memory: a tenth to a sixth of a worker's processor time.
setFlagsFromString("--no-allocation-site-pretenuring")

launch(program)
