import { NodeRuntime } from "@effect/platform-node"
import { program } from "./Cli.ts"

NodeRuntime.runMain(program, { disableErrorReporting: true })
