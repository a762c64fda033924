/** The `purser` command with fault points that `PURSER_FAULT` arms. The published command has none. */
import { NodeRuntime } from "@effect/platform-node"
import { FaultPoints } from "@purser/testkit/FaultPoints"
import { Effect } from "effect"
import { program } from "../../src/Cli.ts"

NodeRuntime.runMain(program.pipe(Effect.provide(FaultPoints.layerFromEnv)), { disableErrorReporting: true })
