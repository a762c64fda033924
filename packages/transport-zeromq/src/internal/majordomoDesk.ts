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

const wayBack = (job: Job): WayBack => {
  let pending: string | undefined
  const part = Effect.suspend(() => {
    const text = pending
    pending = undefined
    return text === undefined ? Effect.void : job.answer(false, [text])
  })
  return {
    key: job.token,
    whole: false,
    send: (text) =>
      Effect.andThen(part, Effect.suspend(() => {
        pending = text
        return Effect.asVoid(Effect.forkDetach(Effect.andThen(Effect.replicateEffect(Effect.yieldNow, turns, { discard: true }), part)))
      })),
    ended: Effect.suspend(() => {
      const text = pending ?? ""
      pending = undefined
      return job.answer(true, [text])
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
