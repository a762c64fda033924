import { Effect } from "effect"
import type { Ledger } from "../Ledger.ts"
export const makeLedgerMemory = (_: { readonly leaseMs: number }): Effect.Effect<Ledger["Service"]> => Effect.die(new Error("pending"))
