/**
 * The routing frames around a request at a ROUTER: the peer's id, the ids of the proxies between, and the empty
 * delimiter of REQ peers. DEALER peers may leave the delimiter out. An answer goes back under the same frames.
 */
import type { Frames } from "../ZmqSocket.ts"

/** A request apart from its way back. */
export interface Enveloped {
  readonly envelope: Frames
  readonly payload: Frames
}

/**
 * Takes a received message apart. Behind a forwarder a DEALER's request has the ids of its way and no delimiter: there
 * everything before the last frame is the way back.
 */
export const openEnvelope = (frames: Frames, behindForwarder = false): Enveloped => {
  const delimiter = frames.findIndex((frame, index) => index > 0 && frame.length === 0)
  const length = delimiter !== -1 ? delimiter + 1 : behindForwarder ? Math.max(1, frames.length - 1) : 1
  return { envelope: frames.slice(0, length), payload: frames.slice(length) }
}
