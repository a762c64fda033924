/** What a socket hears before there is a listener waits for it: the socket is opened first, and its reader then stands still. */
import type { Frames } from "../ZmqSocket.ts"

/** Takes a batch of messages, and calls `more` when it can take the next one. */
export type Hear = (batch: ReadonlyArray<Frames>, more: () => void) => void

/** Between a socket and its listener. */
export interface Ear {
  /** For the socket. */
  readonly hear: Hear
  /** For the listener, once. */
  readonly listen: (hear: Hear) => void
}

/** Makes one that nobody listens to. */
export const makeEar = (): Ear => {
  let listener: Hear | undefined
  let first: (() => void) | undefined
  return {
    hear: (batch, more) => {
      if (listener !== undefined) listener(batch, more)
      else first = () => listener?.(batch, more)
    },
    listen: (hear) => {
      listener = hear
      first?.()
      first = undefined
    }
  }
}
