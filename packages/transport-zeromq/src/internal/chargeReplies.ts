/**
 * Charge requests at the serving side: from text to handler calls and back, in the form in which they were asked.
 * A handler's failure is an answer as it is; a handler that dies, or is cut short, is a trouble with unknown outcome.
 */
import { type ChargeHandler, type ChargeReply, type ChargeRequest, Backpressure, LedgerError, LedgerUnavailable, PeerLost, PeerUnreachable, type ReadRequest, type RequestFrame, TransportError, type TransportErrorReason, type WireCodec } from "@purser/core"
import { type Cause, Clock, Effect, Exit, Metric, Result, type Semaphore } from "effect"
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
    const fiber = yield* Effect.forkDetach(Effect.interruptible(permits.withPermit(call)))
    const exit = yield* Effect.callback<Exit.Exit<ChargeReply> | undefined>((resume) => {
      const leave = end.onCut(() => {
        resume(Effect.undefined)
        fiber.interruptUnsafe()
      })
      fiber.addObserver((ended) => {
        leave()
        resume(Effect.succeed(ended))
      })
    })
    if (exit === undefined) {
      return started
        ? refusal(new PeerLost({ endpoint: label }), chargeKey)
        : refusal(new PeerUnreachable({ endpoint: label, detail: "the server is closing" }), chargeKey)
    }
    if (Exit.isSuccess(exit)) return exit.value
    return yield* died(exit.cause, request)
  })

  const reply = ({ deadlineMs, request }: { readonly deadlineMs: number; readonly request: ReadRequest }, end: ServerEnd): Effect.Effect<ChargeReply> =>
    Result.isFailure(request) ? Effect.succeed(Result.fail(request.failure)) : run(request.success, deadlineMs, end)

  const refuseUnread = (reason: TransportErrorReason) => wire.encodePlainReply(refusal(reason, null), undefined)

  return {
    refuseUnread,
    join: wire.encodeReplies,
    read: (text) => {
      const decoded = wire.decodeRequests(text)
      if (Result.isFailure(decoded)) {
        const malformed = wire.encodePlainReply(Result.fail(decoded.failure), undefined)
        return { malformed: decoded.failure.reason, size: 1, divisible: false, answer: () => Effect.succeed(malformed), answerEach: () => Effect.void, refuse: refuseUnread }
      }
      const frame = decoded.success
      const joined = frame.form === "joined" ? frame.items : []
      const items = frame.form === "plain" ? [{ deadlineMs: Number.MAX_SAFE_INTEGER, request: frame.request }] : frame.items
      return {
        // A plain message is one request: with a bad field nothing of it can be served.
        malformed: frame.form === "plain" && Result.isFailure(frame.request) && frame.request.failure._tag === "TransportError"
          ? frame.request.failure.reason
          : undefined,
        size: items.length,
        divisible: frame.form === "joined",
        answer: (end) =>
          Effect.map(
            Effect.forEach(items, (item) => reply(item, end), { concurrency: "unbounded" }),
            (replies) => encode(wire, frame, replies)
          ),
        answerEach: (end, put) =>
          Effect.forEach(
            joined,
            (item) => Effect.flatMap(reply(item, end), (answer) => put({ id: item.id, reply: answer })),
            { concurrency: "unbounded", discard: true }
          ),
        refuse: (reason) =>
          encode(wire, frame, items.map(({ request }) => refusal(reason, Result.isSuccess(request) ? request.success.chargeKey : null)))
      }
    }
  }
}
