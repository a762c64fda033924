/**
 * Charge requests at the serving side: from text to handler calls and back, in the form in which they were asked.
 * A handler's failure is an answer as it is; a handler that dies, or is cut short, is a trouble with unknown outcome.
 */
import { type ChargeHandler, type ChargeReply, type ChargeRequest, Backpressure, LedgerError, LedgerUnavailable, PeerLost, PeerUnreachable, type RequestFrame, TransportError, type TransportErrorReason, type WireCodec } from "@purser/core"
import type { Cause} from "effect";
import { Clock, Effect, Exit, Metric, Result, type Semaphore } from "effect"
import { ZmqMetrics } from "../ZmqMetrics.ts"
import type { ReplyApp, ServerEnd } from "./replyService.ts"

/** What the app needs beside the handler. */
export interface ChargeRepliesOptions {
  readonly wire: WireCodec
  readonly label: string
  /** One permit for each handler call. */
  readonly permits: Semaphore.Semaphore
  readonly concurrency: number
}

const refusal = (reason: TransportErrorReason, chargeKey: string | null): ChargeReply => Result.fail(new TransportError({ reason, chargeKey }))

const encode = (wire: WireCodec, frame: RequestFrame, replies: ReadonlyArray<ChargeReply>): string =>
  frame.form === "plain"
    ? wire.encodePlainReply(replies[0]!, frame.seq)
    : wire.encodeReplies(frame.items.map(({ id }, index) => ({ id, reply: replies[index]! })))

/** Builds the app of a handler. */
export const makeChargeReplies = (handler: ChargeHandler, options: ChargeRepliesOptions): ReplyApp => {
  const { concurrency, label, permits, wire } = options

  const died = (cause: Cause.Cause<unknown>, request: ChargeRequest): Effect.Effect<ChargeReply> =>
    Metric.update(ZmqMetrics.handlerDefects, 1).pipe(
      Effect.andThen(Effect.logError("a charge handler died", cause)),
      Effect.annotateLogs({ chargeKey: request.chargeKey }),
      Effect.as(
        Result.fail(
          new LedgerError({
            reason: new LedgerUnavailable({ operation: "handle", detail: "the worker failed inside" }),
            chargeKey: request.chargeKey
          })
        )
      )
    )

  const run = Effect.fnUntraced(function*(request: ChargeRequest, deadlineMs: number, end: ServerEnd) {
    const { chargeKey } = request
    const takenAtMs = yield* Clock.currentTimeMillis
    let started = false
    const call = Effect.gen(function*() {
      if (end.isClosing()) return refusal(new PeerUnreachable({ endpoint: label, detail: "the server is closing" }), chargeKey)
      const waitedMs = (yield* Clock.currentTimeMillis) - takenAtMs
      // Its sender has given up and asks again; doing the old request too would make a backlog endless.
      if (waitedMs > Math.max(0, deadlineMs)) return refusal(new Backpressure({ endpoint: label, window: concurrency }), chargeKey)
      started = true
      return yield* Effect.result(Effect.suspend(() => handler(request)))
    })
    const work = Effect.exit(Effect.interruptible(permits.withPermit(call)))
    const exit = yield* Effect.raceFirst(work, Effect.as(Effect.interruptible(end.cut), undefined))
    if (exit === undefined) {
      return started
        ? refusal(new PeerLost({ endpoint: label }), chargeKey)
        : refusal(new PeerUnreachable({ endpoint: label, detail: "the server is closing" }), chargeKey)
    }
    if (Exit.isSuccess(exit)) return exit.value
    return yield* died(exit.cause, request)
  })

  return {
    answer: Effect.fnUntraced(function*(text, end) {
      const decoded = wire.decodeRequests(text)
      if (Result.isFailure(decoded)) return wire.encodePlainReply(Result.fail(decoded.failure), undefined)
      const frame = decoded.success
      const items = frame.form === "plain" ? [{ deadlineMs: Number.MAX_SAFE_INTEGER, request: frame.request }] : frame.items
      const replies = yield* Effect.forEach(
        items,
        ({ deadlineMs, request }): Effect.Effect<ChargeReply> =>
          Result.isFailure(request) ? Effect.succeed(Result.fail(request.failure)) : run(request.success, deadlineMs, end),
        { concurrency: "unbounded" }
      )
      return encode(wire, frame, replies)
    }),
    refuse: (text, reason) => {
      const decoded = text === undefined ? undefined : wire.decodeRequests(text)
      if (decoded === undefined || Result.isFailure(decoded)) return wire.encodePlainReply(refusal(reason, null), undefined)
      const requests = decoded.success.form === "plain" ? [decoded.success] : decoded.success.items
      const replies = requests.map(({ request }) => refusal(reason, Result.isSuccess(request) ? request.success.chargeKey : null))
      return encode(wire, decoded.success, replies)
    }
  }
}
