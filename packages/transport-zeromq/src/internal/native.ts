/**
 * The border to the native addon: loading it when a layer is built, and turning what it throws into typed errors.
 * It throws some errors at once and rejects with others, so that every call goes through `Effect.try` or `tryPromise`.
 */
import { Backpressure, Closed, PeerUnreachable, TransportError } from "@purser/core"
import { Data, Effect } from "effect"

/** The addon's module. */
export type Zeromq = typeof import("zeromq")

const closed = (endpoint: string, detail: string) =>
  new TransportError({ reason: new Closed({ endpoint, detail }), chargeKey: null })

/** Loads the addon: an app whose transport stays in memory never does. */
export const loadZeromq: Effect.Effect<Zeromq, TransportError> = Effect.tryPromise({
  try: () => import("zeromq"),
  catch: (error) => closed("zeromq", `the native addon could not be loaded: ${String(error)}`)
})

/** What the addon threw or rejected with: libzmq's name of the error, or its text. */
export class NativeError extends Data.TaggedError("NativeError")<{ readonly code: string }> {}

/** Reads what the addon threw. */
export const nativeError = (error: unknown): NativeError => {
  const coded = typeof error === "object" && error !== null && "code" in error && typeof error.code === "string"
  return new NativeError({ code: coded ? String(error.code) : String(error) })
}

/** Why a message was not sent. */
export const sendError = ({ code }: NativeError, endpoint: string, socketClosed: boolean, highWaterMark: number): TransportError => {
  if (socketClosed || code === "EBADF") return closed(endpoint, "the socket is closed")
  if (code === "EAGAIN") return new TransportError({ reason: new Backpressure({ endpoint, window: highWaterMark }), chargeKey: null })
  if (code === "EHOSTUNREACH") return new TransportError({ reason: new PeerUnreachable({ endpoint, detail: "the peer is gone" }), chargeKey: null })
  return closed(endpoint, code)
}

/** Why a socket could not be made, bound or connected. */
export const openError = ({ code }: NativeError, endpoint: string): TransportError => closed(endpoint, code)
