/**
 * Messages of any schema on the wire: the joined form of the charge protocol, with other bodies.
 *
 * A request is written once, by its sender, however often it is sent; a frame is put together from texts. Schemas are
 * compiled once, must need no services and must not be asynchronous.
 */
import { MalformedMessage, PeerLost, Tracing, TransportError, type TransportErrorReason } from "@purser/core"
import { frameItemsMax } from "@purser/core/WireSchema"
import { type Cause, Effect, Metric, Result, Schema } from "effect"
import { ZmqMetrics } from "../ZmqMetrics.ts"
import type { ReplyOf } from "./errand.ts"
import { jsonReader, plainRecord } from "./plainRecord.ts"
import type { ReplyApp, ReplyAsk, ReplyOut } from "./replyApp.ts"
import type { ClientWire } from "./windowClient.ts"

/** What a service's messages are. Both sides import the same value. */
export interface Messages<Req, Rep, Err> {
  readonly request: Schema.Codec<Req, unknown>
  readonly reply: Schema.Codec<Rep, unknown>
  /** What a handler may fail with, if anything. */
  readonly error?: Schema.Codec<Err, unknown> | undefined
}

/** Whether a value is an object with fields. */
export const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value)
const malformed = (detail: string) => new MalformedMessage({ detail: detail.slice(0, 500), field: null })
/** Reads JSON. */
export const parseJson = (text: string): Result.Result<unknown, MalformedMessage> => Result.try({ try: (): unknown => JSON.parse(text), catch: () => malformed("not JSON") })

const noRecord: Record<string, unknown> = {}

/** The items of a frame, which need not be records. */
const itemsOf = (text: string): Result.Result<ReadonlyArray<unknown>, MalformedMessage> => {
  const json = parseJson(text)
  if (Result.isFailure(json)) return Result.fail(json.failure)
  const frame = json.success
  if (!isRecord(frame) || frame["v"] !== 1 || !Array.isArray(frame["items"])) return Result.fail(malformed("expected a frame of version 1"))
  return frame["items"].length > frameItemsMax ? Result.fail(malformed(`a frame has at most ${frameItemsMax} items`)) : Result.succeed(frame["items"])
}

const encodeRefusal = Schema.encodeSync(Schema.toCodecJson(TransportError))
const decodeRefusal = Schema.decodeUnknownResult(Schema.toCodecJson(TransportError))
const refusalText = (reason: TransportErrorReason) => `{"refused":${JSON.stringify(encodeRefusal(new TransportError({ reason, chargeKey: null })))}}`

/** Writes values of a schema as JSON text; what cannot be written is a `MalformedMessage`. */
export const jsonWriter = <A>(schema: Schema.Codec<A, unknown>) => {
  const encode = Schema.encodeUnknownResult(Schema.toCodecJson(schema))
  const plain = plainRecord(schema)
  return (value: A): Result.Result<string, MalformedMessage> => {
    const record = plain?.(value)
    return record !== undefined ? Result.succeed(JSON.stringify(record)) : Result.mapBoth(encode(value), { onSuccess: (json) => JSON.stringify(json) ?? "null", onFailure: (error) => malformed(error.message) })
  }
}

/** The sending side: requests are texts already. An answer that cannot be read counts as lost. */
export const makeTypedWire = <Req, Rep, Err>(messages: Messages<Req, Rep, Err>): ClientWire<string, Rep, Err> => {
  const decodeReply = jsonReader(messages.reply)
  const decodeError = messages.error === undefined ? undefined : Schema.decodeUnknownResult(Schema.toCodecJson(messages.error))
  const read = (body: Record<string, unknown>): ReplyOf<Rep, Err> | undefined => {
    if ("reply" in body) {
      const reply = decodeReply(body["reply"])
      return Result.isSuccess(reply) ? Result.succeed(reply.success) : undefined
    }
    if ("error" in body) return decodeError === undefined ? undefined : Result.getOrUndefined(Result.map(decodeError(body["error"]), (error) => Result.fail(error)))
    return Result.getOrUndefined(Result.map(decodeRefusal(body["refused"]), (refused) => Result.fail(refused)))
  }
  return {
    encodeRequests: (client, items) => {
      let text = `{"v":1,"client":${JSON.stringify(client)},"items":[`
      for (let index = 0; index < items.length; index++) {
        const { deadlineMs, id, request, traceparent } = items[index]!
        const trace = traceparent === undefined ? "" : `,"traceparent":"${traceparent}"`
        text += `${index === 0 ? "" : ","}{"id":"${id}","deadline":${deadlineMs}${trace},"body":${request}}`
      }
      return `${text}]}`
    },
    decodeReplies: (text) => {
      const items = itemsOf(text)
      if (Result.isFailure(items)) return Result.fail(new TransportError({ reason: items.failure, chargeKey: null }))
      const replies: Array<{ readonly id: string; readonly reply: ReplyOf<Rep, Err> }> = []
      for (const item of items.success) {
        if (!isRecord(item)) continue
        const { body, id } = item
        const reply = isRecord(body) ? read(body) : undefined
        if (typeof id === "string" && reply !== undefined) replies.push({ id, reply })
      }
      return Result.succeed(replies)
    }
  }
}

const join = (items: ReadonlyArray<ReplyOut<string>>): string => {
  let text = `{"v":1,"items":[`
  for (let index = 0; index < items.length; index++) {
    const { id, reply } = items[index]!
    text += `${index === 0 ? "" : ","}{"id":${JSON.stringify(id)},"body":${reply}}`
  }
  return `${text}]}`
}

/** The serving side: answers are texts. A handler that dies is answered with `PeerLost`: nobody knows what it has done. */
export const makeTypedReplies = <Req, Rep, Err>(
  messages: Messages<Req, Rep, Err>,
  handle: (request: Req) => Effect.Effect<Rep, Err>,
  label: string
): ReplyApp<Req, string, Rep, Err> => {
  const decodeRequest = jsonReader(messages.request)
  const writeReply = jsonWriter(messages.reply)
  const writeError = messages.error === undefined ? undefined : jsonWriter(messages.error)
  const lost = refusalText(new PeerLost({ endpoint: label }))
  const refuse = (detail: string) => new TransportError({ reason: malformed(detail), chargeKey: null })
  // An item that is no record is answered under the empty id, so that its neighbours are served.
  const ask = (item: unknown): ReplyAsk<Req> => {
    const { body, deadline, id, traceparent } = isRecord(item) ? item : noRecord
    const known = typeof id === "string" && id.length > 0 && id.length <= 255
    if (!known || typeof deadline !== "number" || deadline <= 0) {
      return { id: known ? id : "", deadlineMs: 0, request: Result.fail(refuse("an item has an id and a deadline")), source: item }
    }
    const request = decodeRequest(body)
    return Result.isSuccess(request)
      ? { id, deadlineMs: deadline, request: Result.succeed(request.success), traceparent: Tracing.isTraceparent(traceparent) ? traceparent : undefined }
      : { id, deadlineMs: deadline, request: Result.fail(refuse(request.failure.message)), source: item }
  }
  return {
    handle,
    span: { name: "ServiceServer.handle", details: () => undefined },
    success: (value) => {
      const text = writeReply(value)
      return Result.isSuccess(text) ? `{"reply":${text.success}}` : lost
    },
    failure: (error) => writeError === undefined ? lost : Result.match(writeError(error), { onSuccess: (text) => `{"error":${text}}`, onFailure: () => lost }),
    died: (_request, cause: Cause.Cause<Err>) =>
      Metric.update(ZmqMetrics.handlerDefects, 1).pipe(Effect.andThen(Effect.logError("a handler died", cause)), Effect.as(lost)),
    refusal: refusalText,
    refuseUnread: (reason) => join([{ id: "", reply: refusalText(reason) }]),
    join,
    read: (text) => Result.map(itemsOf(text), (items) => ({ items: items.map(ask), divisible: true, malformed: undefined, encode: join }))
  }
}
