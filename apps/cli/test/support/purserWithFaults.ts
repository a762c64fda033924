/** The `purser` command with fault points that `PURSER_FAULT` arms. The published command has none. */
import { FaultPoints } from "@purser/testkit/FaultPoints"
import { Effect } from "effect"
import { program } from "../../src/Cli.ts"
import { launch } from "../../src/launch.ts"

launch(program.pipe(Effect.provide(FaultPoints.layerFromEnv)))
