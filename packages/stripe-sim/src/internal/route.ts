/**
 * What an endpoint is: a method, a shape of path, rules for its parameters, and a handler.
 *
 * A resource module exports its routes; adding a resource is adding a module to the table in `endpoints.ts`.
 */
import type { Account } from "./Account.ts"
import type { Answer } from "./answer.ts"
import type { Params, Rules } from "./params.ts"

/** One request after parsing. `key` is its idempotency key (POST only). */
export interface Call {
  readonly method: string
  readonly path: string
  readonly params: Params
  readonly key: string | undefined
  readonly authorization: string | undefined
  /** The connected account that the call is for. */
  readonly stripeAccount?: string | undefined
  readonly apiVersion: string
  readonly requestId: string
}

/** Answers a call whose parameters passed the rules; `id` is the object in the path, "" where there is none. */
export type Handler = (account: Account, params: Params, id: string) => Answer

/** An endpoint. `path` holds `:id` for the object, e.g. `payment_intents/:id/confirm`. */
export interface Route {
  readonly method: "GET" | "POST" | "DELETE"
  readonly path: string
  readonly rules: Rules
  readonly handler: Handler
}
