/**
 * The place where a request leaves the program. Where nobody says otherwise it goes out over HTTP; a simulation puts a call
 * within the program in its stead, so that the client above it is the real one to the last header. Programs leave it alone.
 */
import { Context } from "effect"
import type { Origin } from "./internal/exchange.ts"

export type { HttpAnswer, HttpEnd, HttpFailure, HttpRequest, Origin } from "./internal/exchange.ts"

/** Opens the connections to a URL's host; asked once for each client. Undefined, the default, is HTTP. */
export const StripeOrigin = Context.Reference<((url: URL, maxSockets: number) => Origin) | undefined>("@purser/stripe/StripeOrigin", {
  defaultValue: () => undefined
})
