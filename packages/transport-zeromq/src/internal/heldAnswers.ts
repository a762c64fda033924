/**
 * Which of several workers' answers to one request is the answer.
 *
 * A fact is one: an outcome, or an error that no retry would change. "Another worker has it", "I cannot reach my database"
 * or "I am closing" says only what this worker knows, and is held back while another one may still give the outcome. It
 * is let go when every worker that the request reached has answered so, or shortly before the sender gives up waiting.
 * "Another worker has it" promises an outcome, perhaps of a worker that is not connected just now: it waits for all.
 */
import type { ChargeReply, ReplyItem } from "@purser/core"
import { Result } from "effect"
import { placeIn } from "./ids.ts"

/** A request that was published and has no answer yet, under an id of `makePlaces`. `body` is what was sent, to be sent again to who joins. */
export interface Publication<Body> {
  readonly id: string
  readonly body: Body
  readonly sentAtMs: number
  readonly deadlineMs: number
}

/** Collects answers. */
export interface HeldAnswers<Body> {
  /** Notes what is published; the same id again is a new attempt. */
  readonly publish: (id: string, body: Body, sentAtMs: number, deadlineMs: number) => void
  /** Takes one worker's answer; gives what is to be passed on, if anything. Answers to what is unknown are passed on. */
  readonly take: (worker: string, item: ReplyItem) => ReplyItem | undefined
  /** Gives what is held for too long, and forgets what is past its deadline. */
  readonly due: (nowMs: number) => ReadonlyArray<ReplyItem>
  /** What has no fact for an answer. */
  readonly open: () => ReadonlyArray<Publication<Body>>
  readonly size: () => number
}

/** A class and no literal for the same reason as an `Errand`. */
class Entry<Body> implements Publication<Body> {
  readonly id: string
  readonly body: Body
  readonly sentAtMs: number
  readonly deadlineMs: number
  /** Of workers that gave no fact, if any. */
  answers: Map<string, ReplyItem> | undefined = undefined
  /** The most workers that there were while it waited. */
  workers: number

  constructor(id: string, body: Body, sentAtMs: number, deadlineMs: number, workers: number) {
    this.id = id
    this.body = body
    this.sentAtMs = sentAtMs
    this.deadlineMs = deadlineMs
    this.workers = workers
  }
}

/** Whether no other worker's answer could say more. */
export const isDecisive = ({ reply }: ReplyItem): boolean =>
  Result.isSuccess(reply) || (!reply.failure.isRetryable && reply.failure._tag !== "TransportError")

const isInProgress = ({ reply }: ReplyItem): boolean => Result.isFailure(reply) && reply.failure.reason._tag === "ChargeInProgress"
const isUnknown = ({ reply }: ReplyItem): boolean => Result.isFailure(reply) && reply.failure.outcome === "unknown"

/** What to say when nobody gave a fact: never "not charged" where one of them does not know. */
const best = (answers: ReadonlyArray<ReplyItem>): ReplyItem =>
  answers.find((answer) => isUnknown(answer) && !isInProgress(answer)) ?? answers.find(isUnknown) ?? answers[0]!

/** How many workers there are, infinite when it cannot be known, and what their answers speak of. */
export interface HeldAnswersOptions<Body> {
  /** Those that can be reached now. */
  readonly reached: () => number
  /** Those that there may be. */
  readonly all: () => number
  /** Whether an answer speaks of what was published; one that does not is passed on as one to what is unknown. Default: it does. */
  readonly fits?: ((body: Body, reply: ChargeReply) => boolean) | undefined
  /** Places that ids name: what takes the place of something before has no use for its answers. */
  readonly window: number
}

/** Makes it empty. */
export const makeHeldAnswers = <Body>({ all, fits, reached, window }: HeldAnswersOptions<Body>): HeldAnswers<Body> => {
  // Places and no map by ids, as the window has them and for its reason.
  const places: Array<Entry<Body> | undefined> = []
  let count = 0
  const entryOf = (id: string) => {
    const entry = places[placeIn(id, window)]
    return entry?.id === id ? entry : undefined
  }
  const remove = ({ id }: Entry<Body>) => {
    places[placeIn(id, window)] = undefined
    count--
  }
  const entries = () => places.filter((entry) => entry !== undefined)
  return {
    publish: (id, body, sentAtMs, deadlineMs) => {
      const place = placeIn(id, window)
      while (places.length <= place) places.push(undefined)
      if (places[place] === undefined) count++
      places[place] = new Entry(id, body, sentAtMs, deadlineMs, reached())
    },
    take: (worker, item) => {
      const entry = entryOf(item.id)
      if (entry === undefined || fits?.(entry.body, item.reply) === false) return item
      if (isDecisive(item)) {
        remove(entry)
        return item
      }
      entry.answers ??= new Map()
      entry.answers.set(worker, item)
      entry.workers = Math.max(entry.workers, reached(), 1)
      const answers = [...entry.answers.values()]
      if (answers.length < (answers.some(isInProgress) ? Math.max(entry.workers, all()) : entry.workers)) return undefined
      remove(entry)
      return best(answers)
    },
    due: (nowMs) => {
      const released: Array<ReplyItem> = []
      for (const entry of entries()) {
        const { answers, deadlineMs, sentAtMs } = entry
        if (answers !== undefined && nowMs >= sentAtMs + deadlineMs * 0.9) {
          released.push(best([...answers.values()]))
          remove(entry)
        } else if (nowMs >= sentAtMs + deadlineMs) remove(entry)
      }
      return released
    },
    open: entries,
    size: () => count
  }
}
