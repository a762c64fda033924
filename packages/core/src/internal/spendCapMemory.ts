import { Effect } from "effect"
import type { SpendCap } from "../SpendCap.ts"
export const makeSpendCapMemory: Effect.Effect<SpendCap["Service"]> = Effect.die(new Error("pending"))
