/**
 * Settings of every socket, with defaults that libzmq does not have: heartbeats are on, reconnects back off, lingering
 * and message size are bounded. Nothing here belongs to one pattern.
 */
import type { CurveSettings } from "./CurveSettings.ts"

/** Settings of a socket; all times in milliseconds. */
export interface SocketSettings {
  /** A ping when a connection was silent that long. */
  readonly heartbeatIntervalMs: number
  /** A connection without an answer for that long is dropped. */
  readonly heartbeatTimeoutMs: number
  /** First delay before a reconnect; it doubles up to `reconnectMaxMs`. */
  readonly reconnectMs: number
  readonly reconnectMaxMs: number
  /** How long a closed socket goes on sending what it had taken. */
  readonly lingerMs: number
  /** A longer message makes libzmq drop the connection, with whatever was queued behind it. */
  readonly messageMaxBytes: number
  /** Messages that libzmq queues per peer and direction. It is no credit: the kernel's buffers hold more. */
  readonly highWaterMark: number
  /** How long binding waits for an address that a closing socket still holds. */
  readonly bindWaitMs: number
  /** Encryption and authentication; without it a socket speaks the NULL mechanism. */
  readonly curve?: CurveSettings | undefined
}

/** The settings of a socket that nobody configured. */
export const defaultSocketSettings: SocketSettings = {
  heartbeatIntervalMs: 1000,
  heartbeatTimeoutMs: 3000,
  reconnectMs: 100,
  reconnectMaxMs: 5000,
  lingerMs: 1000,
  messageMaxBytes: 4 * 1024 * 1024,
  highWaterMark: 1000,
  bindWaitMs: 2000
}
