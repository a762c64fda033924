/** The contract of the sending side of a transport. */
import { Context, type Effect } from "effect"
import type { ChargeOutcome } from "./ChargeOutcome.ts"
import type { ChargeRequest } from "./ChargeRequest.ts"
import type { SubmitError } from "./SubmitError.ts"

/** The sending side. Submitting the same request again, at any time, is safe. */
export class ChargeClient extends Context.Service<ChargeClient, {
  readonly submit: (request: ChargeRequest) => Effect.Effect<ChargeOutcome, SubmitError>
}>()("@purser/core/ChargeClient") {}
