/** The contract of the receiving side of a transport. */
import { Context, type Effect } from "effect"
import type { ChargeOutcome } from "./ChargeOutcome.ts"
import type { ChargeRequest } from "./ChargeRequest.ts"
import type { PipelineError } from "./SubmitError.ts"
import type { TransportError } from "./TransportError.ts"

/** What a served request calls. It may be interrupted when the server closes. */
export type ChargeHandler = (request: ChargeRequest) => Effect.Effect<ChargeOutcome, PipelineError>

/** The receiving side. */
export class ChargeServer extends Context.Service<ChargeServer, {
  /** Serves until interrupted, then finishes what it has taken within a bound. Every request that can be read is answered, also with an error. */
  readonly serve: (handler: ChargeHandler) => Effect.Effect<never, TransportError>
}>()("@purser/core/ChargeServer") {}
