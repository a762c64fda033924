/** One request and the way back to its client, over Node's objects. A client that left is no failure: the call goes on without it. */
import { Effect, Schema } from "effect"
import type { IncomingMessage, ServerResponse } from "node:http"

/** The client went away before its request was whole. */
export class ClientGone extends Schema.TaggedError<ClientGone>("@purser/spend-cap-proxy/ClientGone")("ClientGone", {}) {}

/** The body is longer than a call to Stripe is. */
export class BodyTooLarge extends Schema.TaggedError<BodyTooLarge>("@purser/spend-cap-proxy/BodyTooLarge")("BodyTooLarge", {}) {}

/** A request, read up to its body. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** The whole body, up to a limit. */
export const readBody = ({ request }: Exchange, limitBytes: number): Effect.Effect<Buffer, ClientGone | BodyTooLarge> =>
  Effect.callback((resume) => {
    const chunks: Array<Buffer> = []
    let size = 0
    const done = (result: Effect.Effect<Buffer, ClientGone | BodyTooLarge>) => {
      request.off("data", onData).off("end", onEnd).off("close", onClose).off("error", onClose)
      resume(result)
    }
    const onData = (chunk: Buffer) => {
      size += chunk.length
      if (size <= limitBytes) return void chunks.push(chunk)
      request.resume()
      done(Effect.fail(new BodyTooLarge()))
    }
    const onEnd = () => done(Effect.succeed(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
    const onClose = () => done(Effect.fail(new ClientGone()))
    request.on("data", onData).on("end", onEnd).on("close", onClose).on("error", onClose)
  })

/** Answers with a whole body. Names and values of `headers` alternate. */
export const answer = ({ request, response }: Exchange, status: number, headers: ReadonlyArray<string>, body: Buffer): Effect.Effect<void> =>
  Effect.sync(() => {
    if (response.destroyed || response.headersSent) return
    // What of the request nobody read must not be taken for the next one.
    if (!request.complete) request.resume()
    response.writeHead(status, [...headers])
    response.end(body)
  })

/** Ends the connection as the upstream's end did: the client learns that nobody knows. */
export const reset = ({ response }: Exchange): Effect.Effect<void> => Effect.sync(() => void response.socket?.resetAndDestroy())

/** Passes on an answer that was cut, and cuts it at the same place. */
export const cut = ({ response }: Exchange, status: number, headers: ReadonlyArray<string>, body: Uint8Array): Effect.Effect<void> =>
  Effect.sync(() => {
    if (response.destroyed || response.headersSent) return void response.socket?.destroy()
    response.writeHead(status, [...headers])
    response.flushHeaders()
    response.write(body, () => response.socket?.destroy())
  })
