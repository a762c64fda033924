import { DeadLetters } from "@purser/core"
import { deadLettersCases } from "@purser/testkit/DeadLettersConformance"
import { layer } from "@effect/vitest"

layer(DeadLetters.layerMemory, { excludeTestServices: true })("dead letters in memory", (it) => deadLettersCases(it))
