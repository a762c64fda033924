/**
 * Services for other messages than charges: what both sides agree on, and how a client is used.
 *
 * The patterns promise here what they promise for charges and no more: a request is answered or fails with a typed error,
 * its answer is its own, and it may be handled more than once. What must happen once needs a key that its handler knows.
 */
import type { TransportError } from "@purser/core"
import type { Effect, Result } from "effect"
import type { Messages } from "./internal/typedWire.ts"

/**
 * The messages of a service, declared once as schemas: `request`, `reply`, and `error` if its handler may fail. Values are
 * JSON on the wire, whatever they are in the program. Schemas need no services and are not asynchronous. A plain message
 * with an acknowledgement is a request whose reply is `Schema.Void`.
 */
export interface ServiceMessages<Req, Rep, Err = never> extends Messages<Req, Rep, Err> {}

/** The sending side of a service. */
export interface ServiceClient<Req, Rep, Err> {
  /** Sends one request and waits for its reply. */
  readonly request: (request: Req) => Effect.Effect<Rep, Err | TransportError>
  /** Sends many and gives a result for each, in order: for a fraction of the cost of as many single ones. */
  readonly requestAll: (requests: ReadonlyArray<Req>) => Effect.Effect<ReadonlyArray<Result.Result<Rep, Err | TransportError>>>
}

/** The serving side's work. It may be interrupted when the server closes; one that dies is answered with `PeerLost`. */
export type ServiceHandler<Req, Rep, Err> = (request: Req) => Effect.Effect<Rep, Err>

/** What both sides' options have beside the pattern's. */
export interface ServiceOptions {
  /** A longer request is refused (1 MiB); the same on both sides. */
  readonly requestMaxBytes?: number | undefined
}
