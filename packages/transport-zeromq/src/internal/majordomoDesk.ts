/**
 * A worker's jobs as the requests of a reply service. Answers that are ready together leave together; the last of them is
 * the final one, unless it has left before it was known to be the last.
 */
import { Closed } from "@purser/core"
import { Effect } from "effect"
import type { Job, MajordomoWorker } from "./majordomoWorker.ts"
import type { WayBack } from "./outbox.ts"
import type { ReplyDesk } from "./replyService.ts"

/** Turns that an answer waits to find out whether it is the last one. */
const turns = 4

/** One fiber sends at a time, so that nothing comes after the final answer: the broker would have forgotten the request. */
const wayBack = (job: Job): WayBack => {
  const texts: Array<string> = []
  const now = { ended: false, over: false, sending: false }
  const sendAll = Effect.gen(function*() {
    if (now.sending) return
    now.sending = true
    while (!now.over && (texts.length > 0 || now.ended)) {
      now.over = now.ended && texts.length <= 1
      yield* job.answer(now.over, [texts.shift() ?? ""])
    }
    now.sending = false
  })
  return {
    key: job.token,
    whole: false,
    send: (text) =>
      Effect.suspend(() => {
        texts.push(text)
        return Effect.asVoid(Effect.forkDetach(Effect.andThen(Effect.replicateEffect(Effect.yieldNow, turns, { discard: true }), sendAll)))
      }),
    ended: Effect.suspend(() => {
      now.ended = true
      return sendAll
    })
  }
}

/** The desk of a worker. */
export const majordomoDesk = (worker: MajordomoWorker): ReplyDesk => ({
  incoming: worker.incoming,
  flush: worker.flush,
  open: (frames) =>
    Effect.sync(() => {
      const job = worker.job(frames)
      return job === undefined
        ? { _tag: "Unserved", reason: new Closed({ endpoint: "broker", detail: "not a request" }) }
        : { _tag: "Arrival", back: wayBack(job), payload: job.body }
    })
})
