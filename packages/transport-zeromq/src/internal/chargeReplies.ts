/**
 * Charge requests at the serving side: from text to handler calls and back, in the form in which they were asked.
 * A handler's failure is an answer as it is; a handler that dies, or is cut short, is a trouble with unknown outcome.
 */
import { type ChargeHandler, type ChargeOutcome, type ChargeReply, type ChargeRequest, LedgerError, LedgerUnavailable, type PipelineError, Tracing, TransportError, type TransportErrorReason, type WireCodec } from "@purser/core"
import { Effect, Metric, Result } from "effect"
import { ZmqMetrics } from "../ZmqMetrics.ts"
import type { ReplyApp } from "./replyApp.ts"

const refusal = (reason: TransportErrorReason, request: ChargeRequest | undefined): ChargeReply =>
  Result.fail(new TransportError({ reason, chargeKey: request?.chargeKey ?? null }))

const died = (request: ChargeRequest): ChargeReply =>
  Result.fail(
    new LedgerError({ reason: new LedgerUnavailable({ operation: "handle", detail: "the worker failed inside" }), chargeKey: request.chargeKey })
  )

/** Builds the app of a handler. */
export const makeChargeReplies = (handler: ChargeHandler, wire: WireCodec): ReplyApp<ChargeRequest, ChargeReply, ChargeOutcome, PipelineError> => ({
  handle: handler,
  span: { name: "ChargeServer.handle", details: Tracing.ofCharge },
  success: Result.succeed,
  failure: Result.fail,
  died: (request, cause) =>
    Metric.update(ZmqMetrics.handlerDefects, 1).pipe(
      Effect.andThen(Effect.logError("a charge handler died", cause)),
      Effect.annotateLogs({ chargeKey: request.chargeKey }),
      Effect.as(died(request))
    ),
  refusal,
  refuseUnread: (reason) => wire.encodePlainReply(refusal(reason, undefined), undefined),
  join: wire.encodeReplies,
  read: (text) => {
    const decoded = wire.decodeRequests(text)
    if (Result.isFailure(decoded)) return Result.fail(decoded.failure.reason)
    const frame = decoded.success
    if (frame.form === "joined") {
      return Result.succeed({ items: frame.items, divisible: true, malformed: undefined, encode: wire.encodeReplies })
    }
    // A plain message is one request: with a bad field nothing of it can be served.
    return Result.succeed({
      items: [{ id: "", deadlineMs: Number.MAX_SAFE_INTEGER, request: frame.request, traceparent: frame.traceparent }],
      divisible: false,
      malformed: Result.isFailure(frame.request) ? frame.request.failure.reason : undefined,
      encode: (replies) => wire.encodePlainReply(replies[0]!.reply, frame.seq)
    })
  }
})
