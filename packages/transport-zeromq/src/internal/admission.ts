/**
 * Whether a connecting socket's key is let in. A server that refuses a key closes the connection, libzmq tries again for
 * ever, and what was sent waits in the socket: to say "not charged" that socket must have ended without ever being let in.
 */
import { Deferred, Effect } from "effect"
import type { Event } from "zeromq"

/** What is known of one socket. */
export interface Admission {
  /** Completes when every peer refuses the key and none has ever let it in, or, with undefined, when the socket has ended. */
  readonly refused: Effect.Effect<string | undefined>
  /** Of a socket that is closed: waits for its end, and tells whether no peer has ever let it in. */
  readonly denied: Effect.Effect<boolean>
  readonly onEvent: (event: Event) => void
}

/** Why a peer refuses this side, if that is what has happened. */
export const refusalOf = (event: Event): string | undefined => {
  switch (event.type) {
    case "handshake:error:auth":
      return `${event.address} does not let this side's key in: its certificate is not on the list there`
    case "handshake:error:protocol":
      return event.error.code === "ERR_ZMTP_MECHANISM_MISMATCH" ? `${event.address} wants keys (CURVE) and this side has none, or the other way round` : undefined
    default:
      return undefined
  }
}

/** How long a closed socket may take to wind up until nothing is said of it. */
const endMaxMs = 1000

/** Makes it for a socket that connects to so many peers. */
export const makeAdmission = (peers: () => number): Admission => {
  const refused = Deferred.makeUnsafe<string | undefined>()
  const ended = Deferred.makeUnsafe<void>()
  const refusing = new Set<string>()
  let isIn = false
  return {
    refused: Deferred.await(refused),
    denied: Deferred.await(ended).pipe(Effect.as(true), Effect.timeoutOrElse({ duration: endMaxMs, orElse: () => Effect.succeed(false) }), Effect.map((isKnown) => isKnown && !isIn)),
    onEvent: (event) => {
      if (event.type === "handshake") isIn = true
      if (event.type === "end") {
        Deferred.doneUnsafe(refused, Effect.undefined)
        Deferred.doneUnsafe(ended, Effect.void)
      }
      const detail = refusalOf(event)
      if (detail === undefined || isIn || !("address" in event)) return
      refusing.add(event.address)
      if (refusing.size >= peers()) Deferred.doneUnsafe(refused, Effect.succeed(detail))
    }
  }
}
