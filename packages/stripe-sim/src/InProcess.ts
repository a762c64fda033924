/**
 * A call of the simulator without a socket: a request as a value, the answer as a value.
 *
 * Defines what a socket can do to a call as an error, so that the faults are the same as over HTTP. Refuses to hold
 * time of its own: delays pass on Effect's Clock.
 */
import { Schema } from "effect"

/** A request. `path` holds the query; header names are lower-case; `body` is a form text. */
export interface SimRequest {
  readonly method: "GET" | "POST" | "DELETE"
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** An answer. Header names are lower-case; `body` is JSON, or the page of something between. */
export interface SimResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A webhook as it is sent. Header names are lower-case. */
export interface WebhookRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The connection broke: before the answer (`reset`) or within it (`truncated`). Nothing says what was done. */
export class ConnectionLost extends Schema.TaggedError<ConnectionLost>("@purser/stripe-sim/ConnectionLost")(
  "ConnectionLost",
  { reason: Schema.Literals(["reset", "truncated"]), path: Schema.String }
) {
  override get message() {
    return this.reason === "reset"
      ? `The connection was reset while ${this.path} was asked for`
      : `The answer of ${this.path} ended within its body`
  }
  get isRetryable() {
    return true
  }
}
