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

/** Takes a received message apart. */
export const openEnvelope = (frames: Frames): Enveloped => {
  const delimiter = frames.findIndex((frame, index) => index > 0 && frame.length === 0)
  const length = delimiter === -1 ? 1 : delimiter + 1
  return { envelope: frames.slice(0, length), payload: frames.slice(length) }
}
