import { RunRegistry, RunSchedules, RunStash } from "@purser/core"
import * as RunRegistryConformance from "@purser/testkit/RunRegistryConformance"
import { Layer } from "effect"

RunRegistryConformance.suite("memory", Layer.mergeAll(RunRegistry.layerMemory, RunStash.layerMemory, RunSchedules.layerMemory))
