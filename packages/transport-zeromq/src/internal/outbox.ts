/**
 * Answers on their way out. Those of one way back that are ready at the same time leave in one frame; none waits for an
 * answer that is not ready. An answer that cannot be sent is counted and dropped: its requester is gone, or asks again.
 */
import type { ReplyItem, TransportError } from "@purser/core"
import { Deferred, Effect, Metric } from "effect"
import { ZmqMetrics } from "../ZmqMetrics.ts"

/** Where the answers to one message go. */
export interface WayBack {
  /** The same for messages whose answers may share a frame. */
  readonly key: string
  /** Whether the peer takes exactly one answer for each message, as a REQ socket does. */
  readonly whole: boolean
  readonly send: (text: string) => Effect.Effect<void, TransportError>
  /** Told when all answers to the message have been sent or given up. */
  readonly ended?: Effect.Effect<void> | undefined
}

/** Sends answers. */
export interface Outbox {
  readonly send: (back: WayBack, text: string) => Effect.Effect<void>
  /** Ends when the frame that carries the answer was sent or given up. */
  readonly put: (back: WayBack, item: ReplyItem) => Effect.Effect<void>
}

interface Batch {
  readonly items: Array<ReplyItem>
  readonly sent: Deferred.Deferred<void>
}

const joinMax = 128

/** Makes an outbox that is empty. */
export const makeOutbox = (join: (items: ReadonlyArray<ReplyItem>) => string): Outbox => {
  const batches = new Map<string, Batch>()
  const send: Outbox["send"] = (back, text) =>
    Effect.catch(back.send(text), (error) =>
      Effect.andThen(Metric.update(ZmqMetrics.unroutableReplies, 1), Effect.logDebug("a reply was not sent", error.message)))
  return {
    send,
    put: (back, item) =>
      Effect.suspend(() => {
        const open = batches.get(back.key)
        if (open !== undefined && open.items.length < joinMax) {
          open.items.push(item)
          return Deferred.await(open.sent)
        }
        // The first one waits a turn for others that are ready too, and then sends for all.
        const batch: Batch = { items: [item], sent: Deferred.makeUnsafe<void>() }
        batches.set(back.key, batch)
        return Effect.yieldNow.pipe(
          Effect.andThen(Effect.suspend(() => {
            if (batches.get(back.key) === batch) batches.delete(back.key)
            return send(back, join(batch.items))
          })),
          Effect.ensuring(Deferred.succeed(batch.sent, undefined))
        )
      })
  }
}
