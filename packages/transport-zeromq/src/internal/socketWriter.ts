/**
 * The sending half of a socket: one message after the other, as the addon takes one at a time. Plain callbacks, so that a
 * message costs one promise and no fiber.
 */
import type { TransportError } from "@purser/core"
import { Effect, Result } from "effect"
import type { OutgoingFrames } from "../ZmqSocket.ts"
import { makeLine } from "./line.ts"
import { type NativeError, nativeError } from "./native.ts"

/** Told, once, that libzmq has a message, or why it has not. */
export type Posted = (error: TransportError | undefined) => void

/** How one socket sends. */
export interface SocketWriterOptions {
  /** May throw. */
  readonly send: (frames: OutgoingFrames) => Promise<void>
  readonly isClosed: () => boolean
  /** How often a message is offered again that the socket did not take in time. */
  readonly againMax: number
  readonly errorOf: (error: NativeError) => TransportError
}

/** The messages of one socket. Those that are left when it closes are refused. */
export interface SocketWriter {
  /** Sends after what was posted before; `null` is no message and is done when those are. */
  readonly post: (frames: OutgoingFrames | null, posted: Posted) => void
  /** Waits until nothing is left. */
  readonly settled: Effect.Effect<void>
}

interface Outgoing {
  readonly frames: OutgoingFrames | null
  readonly posted: Posted
}

/** Makes a writer without messages. */
export const makeSocketWriter = ({ againMax, errorOf, isClosed, send }: SocketWriterOptions): SocketWriter => {
  const line = makeLine<Outgoing>()
  let busy = false
  let onIdle: Array<() => void> = []

  const failed = (frames: OutgoingFrames, posted: Posted, again: number, error: NativeError): boolean => {
    if (error.code === "EAGAIN" && again > 0 && !isClosed()) return begin(frames, posted, again - 1)
    posted(errorOf(error))
    return false
  }
  /** Begins to send, or tells at once that it cannot. */
  const begin = (frames: OutgoingFrames, posted: Posted, again: number): boolean => {
    const sending = Result.try({ try: () => send(frames), catch: nativeError })
    if (Result.isFailure(sending)) return failed(frames, posted, again, sending.failure)
    sending.success.then(
      () => {
        posted(undefined)
        next()
      },
      (error: unknown) => {
        if (!failed(frames, posted, again, nativeError(error))) next()
      }
    )
    return true
  }
  const next = (): void => {
    for (let message = line.take(); message !== undefined; message = line.take()) {
      if (message.frames === null) message.posted(undefined)
      else if (begin(message.frames, message.posted, againMax)) return
    }
    busy = false
    const told = onIdle
    onIdle = []
    for (const tell of told) tell()
  }

  return {
    post: (frames, posted) => {
      if (busy) return line.add({ frames, posted })
      if (frames === null) return posted(undefined)
      busy = true
      if (!begin(frames, posted, againMax)) next()
    },
    settled: Effect.callback((resume) => {
      if (busy) onIdle.push(() => resume(Effect.void))
      else resume(Effect.void)
    })
  }
}
