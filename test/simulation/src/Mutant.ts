/**
 * A bug that is planted at a seam of the engine, to see that the judge finds it. The engine itself stays as it is.
 */
import type { ChargeClient, ChargeGateway, ChargeHandler, Ledger, RunLedger, RunRegistry, SpendCap } from "@purser/core"
import type { Webhooks } from "@purser/engine"
import type { StripeSimShape } from "@purser/stripe-sim"
import type { Context } from "effect"
import type { Engine } from "./Office.ts"
import type { Rng } from "./Rng.ts"
import type { Scenario } from "./Scenario.ts"

/** What a bug can reach. */
export interface Tools {
  readonly rng: Rng
  readonly ledger: Ledger["Service"]
  readonly cap: SpendCap["Service"]
  readonly sim: StripeSimShape
  readonly register: RunRegistry["Service"]
}

/** A planted bug. The seams are called once for each life of a worker; `shared` ones once for a world. */
export interface Mutant {
  readonly name: string
  /** What it stands for in a real program. */
  readonly story: string
  /** Seeds within which it must be found. */
  readonly within: number
  /** The violation that it must show. */
  readonly shows: RegExp
  /** Bugs that show in some worlds only are tried in those. */
  readonly fits?: (scenario: Scenario) => boolean
  readonly ledger?: ((tools: Tools) => Ledger["Service"]) | undefined
  readonly cap?: ((tools: Tools) => SpendCap["Service"]) | undefined
  readonly gateway?: (gateway: ChargeGateway["Service"], tools: Tools) => ChargeGateway["Service"]
  readonly handler?: (handler: ChargeHandler, tools: Tools) => ChargeHandler
  /** What a life of a runner or of a command sees of the run book, of the register, and how it sends. */
  readonly book?: (book: RunLedger["Service"], tools: Tools, life: string) => RunLedger["Service"]
  readonly register?: (register: RunRegistry["Service"], tools: Tools, life: string) => RunRegistry["Service"]
  readonly sender?: (client: ChargeClient["Service"], tools: Tools, life: string) => ChargeClient["Service"]
  readonly hooks?: (webhooks: Webhooks["Service"], tools: Tools) => Webhooks["Service"]
  /** What reconciliation works with. */
  readonly reconciling?: (engine: Context.Context<Engine>, tools: Tools) => Context.Context<Engine>
  /** What those who refund work with. */
  readonly refunding?: (engine: Context.Context<Engine>, tools: Tools) => Context.Context<Engine>
  /** What dunning works with. */
  readonly dunning?: (engine: Context.Context<Engine>, tools: Tools) => Context.Context<Engine>
  /** What people who have charges retried work with. */
  readonly people?: (engine: Context.Context<Engine>, tools: Tools) => Context.Context<Engine>
  readonly forgetsRestorePoint?: boolean
  readonly saysRoomAnyway?: boolean
  readonly takesUndoneForDone?: boolean
  readonly takesAnyReply?: boolean
  readonly answersLastAsker?: boolean
}
