/**
 * The few frames of the PostgreSQL wire protocol (v3) that the PGlite hub has to read or write itself.
 * It knows frame borders and names, never the meaning of a query.
 */
import { Buffer } from "node:buffer"

/** First bytes of the frames that a client sends. */
export const Front = {
  bind: 0x42,
  close: 0x43,
  copyDone: 0x63,
  copyFail: 0x66,
  describe: 0x44,
  flush: 0x48,
  functionCall: 0x46,
  parse: 0x50,
  query: 0x51,
  sync: 0x53,
  terminate: 0x58
} as const

/** First bytes of the frames that the backend sends and the hub looks at. */
export const Back = {
  backendKeyData: 0x4b,
  notification: 0x41,
  readyForQuery: 0x5a
} as const

/** Codes that stand where a startup packet has its protocol version. */
export const StartupCode = { cancel: 80877102, ssl: 80877103, gss: 80877104 } as const

/** The target byte of Close and Describe that means "a prepared statement". */
export const statementTarget = 0x53

/** The status byte of ReadyForQuery outside of a transaction. */
export const idleStatus = 0x49

/** Frames after which the backend has something to do; the others only wait for one of these. */
export const endsBatch = (type: number): boolean =>
  type === Front.sync || type === Front.query || type === Front.flush || type === Front.functionCall ||
  type === Front.copyDone || type === Front.copyFail

/** A copy of `frame` whose bytes from `start` to `end` are `text`, with the length put right. */
export const splice = (frame: Buffer, start: number, end: number, text: string): Buffer => {
  const out = Buffer.concat([frame.subarray(0, start), Buffer.from(text, "utf8"), frame.subarray(end)])
  out.writeInt32BE(out.length - 1, 1)
  return out
}

const frame = (type: number, body: Buffer): Buffer => {
  const head = Buffer.alloc(5)
  head[0] = type
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

/** A simple query. */
export const simpleQuery = (sql: string): Buffer => frame(Front.query, Buffer.from(`${sql}\0`, "utf8"))

/** The packet that opens a session; parameter names and values contain no NUL. */
export const startupPacket = (parameters: Readonly<Record<string, string>>): Buffer => {
  const body = Buffer.from(`${Object.entries(parameters).flat().join("\0")}\0\0`, "utf8")
  const head = Buffer.alloc(8)
  head.writeInt32BE(body.length + 8, 0)
  head.writeInt32BE(196608, 4)
  return Buffer.concat([head, body])
}

/** The address that a CancelRequest names: which virtual connection, and the proof that the caller owns it. */
export const backendKeyData = (id: number, secret: number): Buffer => {
  const body = Buffer.alloc(8)
  body.writeInt32BE(id, 0)
  body.writeInt32BE(secret, 4)
  return frame(Back.backendKeyData, body)
}

/** What a backend answers to a query that was cancelled before it ran. */
export const queryCancelled: Buffer = Buffer.concat([
  frame(0x45, Buffer.from("SERROR\0VERROR\0C57014\0Mcanceling statement due to user request\0\0", "utf8")),
  frame(Back.readyForQuery, Buffer.from([idleStatus]))
])

/** Calls `visit` with type, start and end of each whole frame, and returns where the first unfinished one starts. */
export const eachFrame = (bytes: Buffer, visit: (type: number, start: number, end: number) => void): number => {
  let at = 0
  while (bytes.length - at >= 5) {
    const end = at + 1 + bytes.readInt32BE(at + 1)
    if (end > bytes.length) break
    visit(bytes[at]!, at, end)
    at = end
  }
  return at
}

/** A LISTEN or UNLISTEN statement: its channel (`*` for all), as the backend folds it. */
export const listenStatement = (sql: string): { readonly listen: boolean; readonly channel: string } | undefined => {
  const match = /^\s*(UN)?LISTEN\s+(?:"((?:[^"]|"")+)"|([A-Za-z_][\w$]*|\*))\s*;?\s*$/i.exec(sql)
  if (match === null) return undefined
  const channel = match[2] === undefined ? match[3]!.toLowerCase() : match[2].replaceAll("\"\"", "\"")
  return { listen: match[1] === undefined, channel }
}
