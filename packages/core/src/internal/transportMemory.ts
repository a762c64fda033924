import { type Context, Effect } from "effect"
import type { TransportServices } from "../Transport.ts"
export const makeMemoryTransport: Effect.Effect<Context.Context<TransportServices>> = Effect.die(new Error("pending"))
