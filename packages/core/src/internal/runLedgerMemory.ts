import { Effect } from "effect"
import type { Ledger } from "../Ledger.ts"
import type { RunLedger } from "../RunLedger.ts"
export const makeRunLedgerMemory: Effect.Effect<RunLedger["Service"], never, Ledger> = Effect.die(new Error("pending"))
