/**
 * The frames of 18/MDP (Majordomo 0.2), read and written. Bodies are passed on as they are.
 *
 * The command frame is one byte in the standard. What Purser's own peers have to say beyond it follows that byte as digits,
 * so that a plain peer is understood and understands: a client's deadline in milliseconds, a worker's credit, and with a
 * heartbeat how many requests (or final answers) were sent before it. ZeroMQ keeps the order of a connection's messages, so
 * that a count which is ahead of what has arrived proves that a reconnect has lost some.
 */
import type { Frames, OutgoingFrames } from "../ZmqSocket.ts"
import { isSeal } from "./frameSeal.ts"

const clientHeader = "MDPC02"
const workerHeader = "MDPW02"
const nameMaxBytes = 255

const clientCommands = { request: 1, partial: 2, final: 3 } as const
const workerCommands = { ready: 1, request: 2, partial: 3, final: 4, heartbeat: 5, disconnect: 6 } as const

const command = (code: number, parameter?: number): string =>
  parameter === undefined ? String.fromCharCode(code) : `${String.fromCharCode(code)}${Math.max(0, Math.round(parameter))}`

/** What follows the command's byte; undefined when nothing does, or when it is no count. */
const parameterOf = (frame: Frames[number]): number | undefined => {
  if (frame.length < 2 || frame.length > 13) return undefined
  const text = frame.toString("latin1", 1)
  return /^\d+$/.test(text) ? Number(text) : undefined
}

const nameOf = (frame: Frames[number] | undefined): string | undefined =>
  frame === undefined || frame.length === 0 || frame.length > nameMaxBytes ? undefined : frame.toString("utf8")

/** What a broker's ROUTER hears. `peer` are the frames that lead back; a `Plain` request knows nothing of this protocol. */
export type BrokerMessage =
  | { readonly _tag: "Plain"; readonly peer: Frames; readonly body: Frames }
  | { readonly _tag: "Request"; readonly peer: Frames; readonly service: string; readonly deadlineMs: number | undefined; readonly body: Frames }
  | { readonly _tag: "Ready"; readonly peer: Frames; readonly service: string; readonly credit: number | undefined }
  | { readonly _tag: "Answer"; readonly peer: Frames; readonly token: string; readonly final: boolean; readonly body: Frames }
  | { readonly _tag: "Heartbeat"; readonly peer: Frames; readonly finals: number | undefined }
  | { readonly _tag: "Disconnect"; readonly peer: Frames }

const brace = "{".charCodeAt(0)
const isPlain = ([body, seal]: Frames, length: number): boolean =>
  body?.[0] === brace && (length === 1 || length === 2 && seal !== undefined && isSeal(seal))

/** The frames that lead back to the sender of a received message: a REQ peer's delimiter is part of them. */
export const wayBackOf = (frames: Frames): Frames => frames.slice(0, frames[1]?.length === 0 ? 2 : 1)

/** Reads what came to a broker; undefined is no message of this protocol. */
export const readAtBroker = (frames: Frames): BrokerMessage | undefined => {
  const peer = wayBackOf(frames)
  const at = peer.length
  if (isPlain(frames.slice(at, at + 2), frames.length - at)) return { _tag: "Plain", peer, body: frames.slice(at) }
  const header = frames[at]?.toString("latin1")
  const kind = frames[at + 1]
  if (kind === undefined || kind.length === 0) return undefined
  if (header === clientHeader) {
    const service = nameOf(frames[at + 2])
    if (kind[0] !== clientCommands.request || service === undefined || frames.length < at + 4) return undefined
    return { _tag: "Request", peer, service, deadlineMs: parameterOf(kind), body: frames.slice(at + 3) }
  }
  if (header !== workerHeader) return undefined
  switch (kind[0]) {
    case workerCommands.ready: {
      const service = nameOf(frames[at + 2])
      return service === undefined ? undefined : { _tag: "Ready", peer, service, credit: parameterOf(kind) }
    }
    case workerCommands.partial:
    case workerCommands.final: {
      const token = nameOf(frames[at + 2])
      if (token === undefined || frames[at + 3]?.length !== 0) return undefined
      return { _tag: "Answer", peer, token, final: kind[0] === workerCommands.final, body: frames.slice(at + 4) }
    }
    case workerCommands.heartbeat:
      return { _tag: "Heartbeat", peer, finals: parameterOf(kind) }
    case workerCommands.disconnect:
      return { _tag: "Disconnect", peer }
    default:
      return undefined
  }
}

/** What a worker's DEALER hears. */
export type WorkerMessage =
  | { readonly _tag: "Request"; readonly token: Frames[number]; readonly body: Frames }
  | { readonly _tag: "Heartbeat"; readonly requests: number | undefined }
  | { readonly _tag: "Disconnect" }

/** Reads what came to a worker. */
export const readAtWorker = (frames: Frames): WorkerMessage | undefined => {
  const kind = frames[1]
  if (frames[0]?.toString("latin1") !== workerHeader || kind === undefined || kind.length === 0) return undefined
  switch (kind[0]) {
    case workerCommands.request: {
      const token = frames[2]
      return token === undefined || frames[3]?.length !== 0 || frames.length < 5 ? undefined : { _tag: "Request", token, body: frames.slice(4) }
    }
    case workerCommands.heartbeat:
      return { _tag: "Heartbeat", requests: parameterOf(kind) }
    case workerCommands.disconnect:
      return { _tag: "Disconnect" }
    default:
      return undefined
  }
}

/** Reads an answer at a client; undefined is no message of this protocol. */
export const readAtClient = (frames: Frames): { readonly final: boolean; readonly body: Frames } | undefined => {
  const kind = frames[1]?.[0]
  if (frames[0]?.toString("latin1") !== clientHeader || frames.length < 4) return undefined
  if (kind !== clientCommands.partial && kind !== clientCommands.final) return undefined
  return { final: kind === clientCommands.final, body: frames.slice(3) }
}

/** What is written, without the routing frames in front. */
export const mdp = {
  request: (service: string, deadlineMs: number | undefined, body: OutgoingFrames): OutgoingFrames => [clientHeader, command(clientCommands.request, deadlineMs), service, ...body],
  reply: (service: string, final: boolean, body: OutgoingFrames): OutgoingFrames => [clientHeader, command(final ? clientCommands.final : clientCommands.partial), service, ...body],
  ready: (service: string, credit: number | undefined): OutgoingFrames => [workerHeader, command(workerCommands.ready, credit), service],
  work: (token: string, body: OutgoingFrames): OutgoingFrames => [workerHeader, command(workerCommands.request), token, "", ...body],
  answer: (token: string | Uint8Array, final: boolean, body: OutgoingFrames): OutgoingFrames => [
    workerHeader,
    command(final ? workerCommands.final : workerCommands.partial),
    token,
    "",
    ...body
  ],
  heartbeat: (count: number | undefined): OutgoingFrames => [workerHeader, command(workerCommands.heartbeat, count)],
  disconnect: [workerHeader, command(workerCommands.disconnect)] as OutgoingFrames
} as const
