/**
 * Answers on their way out. Those of one way back that are ready at the same time leave in one frame; none waits for an
 * answer that is not ready. An answer that cannot be sent is counted and dropped: its requester is gone, or asks again.
 */
import type { TransportError } from "@purser/core"
import { Effect, type Fiber, Metric } from "effect"
import { ZmqMetrics } from "../ZmqMetrics.ts"
import type { ReplyOut } from "./replyApp.ts"

/** Where the answers to one message go. */
export interface WayBack {
  /** The same for messages whose answers may share a frame. */
  readonly key: string
  /** Whether the peer takes exactly one answer for each message, as a REQ socket does. */
  readonly whole: boolean
  readonly send: (text: string) => Effect.Effect<void, TransportError>
  /** The same without a fiber; false where that cannot be. */
  readonly post?: ((text: string, posted: (error: TransportError | undefined) => void) => boolean) | undefined
  /** Told when all answers to the message have been sent or given up. */
  readonly ended?: Effect.Effect<void> | undefined
}

/** Sends answers. Nothing of it fails. */
export interface Outbox<Reply> {
  /** Sends a text, and then tells `ended`. */
  readonly send: (back: WayBack, text: string, ended: ReadonlyArray<Effect.Effect<void>>) => void
  /** Lays an answer to those that leave together. `ended`: it is the last one of its message. */
  readonly put: (back: WayBack, item: ReplyOut<Reply>, ended: boolean) => void
  /** What is laid from now on waits for `flush`. */
  readonly hold: () => void
  /** Sends what has been laid together, which happens by itself in the next turn unless it is held. */
  readonly flush: () => void
  /** Sends that are under way, or laid together. */
  readonly size: () => number
  /** Called when nothing is under way any more. */
  onIdle: () => void
}

interface Batch<Reply> {
  readonly back: WayBack
  readonly items: Array<ReplyOut<Reply>>
  readonly ended: Array<Effect.Effect<void>>
}

const joinMax = 128

/** Makes an outbox that is empty; `run` starts a fiber. */
export const makeOutbox = <Reply>(
  join: (items: ReadonlyArray<ReplyOut<Reply>>) => string,
  run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
): Outbox<Reply> => {
  let batches = new Map<string, Batch<Reply>>()
  let sending = 0
  let scheduled = false
  let held = false

  const idle = () => {
    if (sending === 0 && batches.size === 0) outbox.onIdle()
  }
  const begin = (work: Effect.Effect<void>) => {
    sending++
    run(work).addObserver(() => {
      sending--
      idle()
    })
  }
  const lost = (error: TransportError) => Effect.andThen(Metric.update(ZmqMetrics.unroutableReplies, 1), Effect.logDebug("a reply was not sent", error.message))
  const sent = (back: WayBack, text: string) => Effect.catch(back.send(text), lost)
  const dispatch = (back: WayBack, text: string) => {
    sending++
    const posted = back.post?.(text, (error) => {
      sending--
      if (error !== undefined) begin(lost(error))
      else idle()
    })
    if (posted === true) return
    sending--
    begin(sent(back, text))
  }
  const flushBatch = ({ back, ended, items }: Batch<Reply>) => {
    if (ended.length === 0) {
      for (let at = 0; at < items.length; at += joinMax) dispatch(back, join(at === 0 && items.length <= joinMax ? items : items.slice(at, at + joinMax)))
      return
    }
    begin(Effect.gen(function*() {
      for (let at = 0; at < items.length; at += joinMax) yield* sent(back, join(items.slice(at, at + joinMax)))
      for (const told of ended) yield* told
    }))
  }

  const outbox: Outbox<Reply> = {
    onIdle: () => undefined,
    size: () => sending + batches.size,
    send: (back, text, ended) => ended.length === 0 ? dispatch(back, text) : begin(Effect.andThen(sent(back, text), Effect.all(ended, { discard: true }))),
    put: (back, item, ended) => {
      let batch = batches.get(back.key)
      if (batch === undefined) batches.set(back.key, batch = { back, items: [], ended: [] })
      batch.items.push(item)
      if (ended && back.ended !== undefined) batch.ended.push(back.ended)
      if (held || scheduled) return
      scheduled = true
      run(Effect.andThen(Effect.yieldNow, Effect.sync(() => {
        scheduled = false
        outbox.flush()
      })))
    },
    hold: () => void (held = true),
    flush: () => {
      held = false
      if (batches.size === 0) return
      const ready = batches
      batches = new Map()
      for (const batch of ready.values()) flushBatch(batch)
    }
  }
  return outbox
}
