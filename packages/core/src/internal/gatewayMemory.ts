import { Effect } from "effect"
import type { ChargeGateway } from "../ChargeGateway.ts"
export const makeGatewayMemory: Effect.Effect<ChargeGateway["Service"]> = Effect.die(new Error("pending"))
