/** What a reply service needs to know of the messages that it serves: reading requests, running them, writing answers. */
import type { SpanDetails, TransportError, TransportErrorReason } from "@purser/core"
import { type Cause, type Effect, Result } from "effect"

/** One request of a frame, or why it cannot be read. `deadlineMs` counts from receipt. */
export interface ReplyAsk<Req> {
  readonly id: string
  readonly deadlineMs: number
  readonly request: Result.Result<Req, TransportError>
  /** The sender's span, when it traces. */
  readonly traceparent?: string | undefined
  /** Of one that cannot be read, what came; without it, only the frame tells. */
  readonly source?: unknown
}

/** One answer on its way out. */
export interface ReplyOut<Reply> {
  readonly id: string
  readonly reply: Reply
}

/** One frame of requests that could be read. */
export interface ReplyCall<Req, Reply> {
  readonly items: ReadonlyArray<ReplyAsk<Req>>
  /** Whether each of them can be answered by itself. */
  readonly divisible: boolean
  /** Why nothing of it can be served, though the frame itself could be read. */
  readonly malformed: TransportErrorReason | undefined
  /** The answer to the whole frame. */
  readonly encode: (replies: ReadonlyArray<ReplyOut<Reply>>) => string
}

/** What gives the answers. Only `handle` may throw. */
export interface ReplyApp<Req, Reply, A, E> {
  readonly read: (text: string) => Result.Result<ReplyCall<Req, Reply>, TransportErrorReason>
  readonly handle: (request: Req) => Effect.Effect<A, E>
  /** What the span of a handled request is called, and says. */
  readonly span: { readonly name: string; readonly details: (request: Req) => SpanDetails | undefined }
  readonly success: (value: A) => Reply
  readonly failure: (error: E) => Reply
  /** The answer for a request whose handler died or was interrupted; it may log. */
  readonly died: (request: Req, cause: Cause.Cause<E>) => Effect.Effect<Reply>
  /** The answer to a request that was not handled, or cannot be read. */
  readonly refusal: (reason: TransportErrorReason, request: Req | undefined) => Reply
  /** The answer to what is no frame of requests. */
  readonly refuseUnread: (reason: TransportErrorReason) => string
  /** One frame of several answers. */
  readonly join: (items: ReadonlyArray<ReplyOut<Reply>>) => string
}

/** The answer to a frame of which nothing is handled. */
export const refuseCall = <Req, Reply, A, E>(app: ReplyApp<Req, Reply, A, E>, call: ReplyCall<Req, Reply>, reason: TransportErrorReason): string =>
  call.encode(call.items.map(({ id, request }) => ({ id, reply: app.refusal(reason, Result.isSuccess(request) ? request.success : undefined) })))

/** The answer to a text of which nothing is handled. */
export const refusalOf = <Req, Reply, A, E>(app: ReplyApp<Req, Reply, A, E>, text: string, reason: TransportErrorReason): string => {
  const read = app.read(text)
  return Result.isFailure(read) ? app.refuseUnread(reason) : refuseCall(app, read.success, reason)
}
