/**
 * Both sides of the contract in one process. Each message is text of the real wire, and `MemoryNetwork` decides its
 * fate; the client resends what is lost, a bounded number of times.
 */
import { Context, Deferred, Effect, Fiber, Option, Queue, Result } from "effect"
import { ChargeClient } from "../ChargeClient.ts"
import type { ChargeOutcome } from "../ChargeOutcome.ts"
import type { ChargeRequest } from "../ChargeRequest.ts"
import { type ChargeHandler, ChargeServer } from "../ChargeServer.ts"
import { LedgerError, LedgerUnavailable } from "../LedgerError.ts"
import { MemoryNetwork } from "../MemoryNetwork.ts"
import type { SubmitError } from "../SubmitError.ts"
import { Tracing } from "../Tracing.ts"
import { RetriesExhausted, TransportError } from "../TransportError.ts"
import { type ChargeReply, Wire } from "../Wire.ts"

const attemptsMax = 4
const timeoutMs = 30_000
const drainMs = 10_000
const endpoint = "memory"

interface Delivery {
  readonly frame: string
  readonly answer: (frame: string) => Effect.Effect<void>
}

/** Runs a handler so that it always answers, also when it dies. */
export const answerOf = (handler: ChargeHandler, request: Parameters<ChargeHandler>[0]): Effect.Effect<ChargeReply> =>
  Effect.suspend(() => handler(request)).pipe(
    Effect.result,
    Effect.catchCause((cause) =>
      Effect.as(
        Effect.logError("a charge handler died", cause),
        Result.fail(
          new LedgerError({
            reason: new LedgerUnavailable({ operation: "handle", detail: "the worker failed inside" }),
            chargeKey: request.chargeKey
          })
        )
      )
    )
  )

export const makeMemoryTransport: Effect.Effect<Context.Context<ChargeClient | ChargeServer>> = Effect.gen(function*() {
  const fateOf = yield* MemoryNetwork
  const wire = Wire.make({ labels: "opaque" })
  const inbox = yield* Queue.bounded<Delivery>(1024)

  /** Lets a message meet its fate; `lost` runs when it never arrives. */
  const carry = Effect.fnUntraced(function*(direction: "request" | "reply", deliver: Effect.Effect<unknown>, lost: Effect.Effect<unknown>) {
    const fate = yield* fateOf(direction)
    switch (fate._tag) {
      case "Deliver":
        return yield* deliver
      case "Lose":
        return yield* lost
      case "Repeat":
        yield* deliver
        return yield* deliver
      case "Delay":
        return yield* Effect.forkDetach(Effect.delay(deliver, fate.delayMs))
    }
  })

  /** One attempt: the frame of the answer, or none where it was lost or never came. */
  const submitOnce = Effect.fnUntraced(function*(frame: string) {
    const reply = yield* Deferred.make<string | undefined>()
    const lost = Deferred.succeed(reply, undefined)
    yield* carry(
      "request",
      Queue.offer(inbox, { frame, answer: (text) => Effect.asVoid(carry("reply", Deferred.succeed(reply, text), lost)) }),
      lost
    )
    return Option.getOrUndefined(yield* Effect.timeoutOption(Deferred.await(reply), timeoutMs))
  })

  const submit = Effect.fnUntraced(function*(request: ChargeRequest, traceparent: string | undefined): Effect.fn.Return<ChargeOutcome, SubmitError> {
    const chargeKey = request.chargeKey
    const frame = wire.encodeRequests("memory", [{ id: chargeKey, deadlineMs: timeoutMs, request, traceparent }])
    for (let attempt = 1; attempt <= attemptsMax; attempt++) {
      const answer = yield* submitOnce(frame)
      if (answer === undefined) continue
      const replies = wire.decodeReplies(answer)
      // An answer that cannot be read says nothing about the charge: it counts as lost.
      if (Result.isFailure(replies)) continue
      const item = replies.success.find(({ id }) => id === chargeKey)
      if (item !== undefined) return yield* Effect.fromResult(item.reply)
    }
    return yield* new TransportError({ reason: new RetriesExhausted({ endpoint, attempts: attemptsMax }), chargeKey })
  })
  const client = ChargeClient.of({
    submit: (request) => Tracing.sending("ChargeClient.submit", (traceparent) => submit(request, traceparent), Tracing.ofCharge(request))
  })

  const handle = Effect.fnUntraced(function*(handler: ChargeHandler, { answer, frame }: Delivery) {
    const decoded = wire.decodeRequests(frame)
    if (Result.isFailure(decoded) || decoded.success.form === "plain") return
    const replies = yield* Effect.forEach(decoded.success.items, ({ id, request, traceparent }) =>
      Result.isFailure(request)
        ? Effect.succeed({ id, reply: Result.fail(request.failure) })
        : Effect.map(Tracing.serving("ChargeServer.handle", traceparent, answerOf(handler, request.success), Tracing.ofCharge(request.success)), (reply) => ({ id, reply })))
    yield* answer(wire.encodeReplies(replies))
  })

  const server = ChargeServer.of({
    serve: (handler) =>
      Effect.suspend(() => {
        const inWork = new Set<Fiber.Fiber<void>>()
        const begin = (delivery: Delivery) =>
          Effect.map(Effect.forkDetach(handle(handler, delivery)), (fiber) => {
            inWork.add(fiber)
            fiber.addObserver(() => inWork.delete(fiber))
          })
        // What was begun is finished and answered, within a bound; only then is it cut short.
        const drain = Effect.suspend(() => Fiber.awaitAll([...inWork])).pipe(
          Effect.timeoutOrElse({ duration: drainMs, orElse: () => Fiber.interruptAll([...inWork]) })
        )
        return Effect.forever(Effect.flatMap(Queue.take(inbox), (delivery) => Effect.uninterruptible(begin(delivery)))).pipe(
          Effect.onExit(() => drain)
        )
      })
  })

  return Context.make(ChargeClient, client).pipe(Context.add(ChargeServer, server))
})
