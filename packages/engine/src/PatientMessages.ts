/**
 * The messages of the workflow engine, on a store that is away for a moment. The library takes a message that could not be kept, or looked
 * up, for a defect of the workflow that asked: a run would be said to have failed, or stand still for good, because the database was
 * restarted. So what may help to be asked again is asked until it answers. Whoever loses its shards meanwhile is interrupted.
 */
import { Effect, Layer, Schedule } from "effect"
import { type ClusterError, MessageStorage } from "effect/cluster"
import { troubleWords } from "./ClusterLog.ts"

const patience = Schedule.min([Schedule.exponential("200 millis"), Schedule.spaced("5 seconds")])

/** What a store that is there refuses for ever, by the kinds of its driver, and by SQLSTATE (22…: data, 23…: a constraint). */
const refusals = new Set(["SqlSyntaxError", "UniqueViolation", "ConstraintError"])

const isRefusal = (error: unknown): boolean => {
  if (typeof error !== "object" || error === null) return false
  if ("_tag" in error && refusals.has(String(error._tag))) return true
  if ("code" in error && /^2[23][0-9A-Z]{3}$/.test(String(error.code))) return true
  return ("cause" in error && isRefusal(error.cause)) || ("reason" in error && isRefusal(error.reason))
}

const mayHelp = (error: ClusterError.PersistenceError | ClusterError.MalformedMessage): boolean => error._tag === "PersistenceError" && !isRefusal(error.cause)

const patiently = <A, E extends ClusterError.PersistenceError | ClusterError.MalformedMessage>(call: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    let isTold = false
    return call.pipe(
      Effect.tapError((error) => {
        if (isTold || !mayHelp(error)) return Effect.void
        isTold = true
        return Effect.logWarning(`the workflow engine waits for its store: ${troubleWords(error)}`)
      }),
      Effect.retry({ while: mayHelp, schedule: patience })
    )
  })

/** The storage with patience for all that a workflow asks of it; its own loops, which ask again anyway, are as they were. */
export const patientMessages = <E, R>(storage: Layer.Layer<MessageStorage.MessageStorage, E, R>): Layer.Layer<MessageStorage.MessageStorage, E, R> =>
  Layer.effect(MessageStorage.MessageStorage, Effect.map(MessageStorage.MessageStorage, (kept) =>
    MessageStorage.MessageStorage.of({
      ...kept,
      saveRequest: (message) => patiently(kept.saveRequest(message)),
      saveEnvelope: (envelope) => patiently(kept.saveEnvelope(envelope)),
      saveReply: (reply) => patiently(kept.saveReply(reply)),
      clearReplies: (requestId, options) => patiently(kept.clearReplies(requestId, options)),
      repliesFor: (requests) => patiently(kept.repliesFor(requests)),
      repliesForUnfiltered: (requestIds) => patiently(kept.repliesForUnfiltered(requestIds)),
      requestIdForPrimaryKey: (key) => patiently(kept.requestIdForPrimaryKey(key)),
      unprocessedMessagesById: (messageIds) => patiently(kept.unprocessedMessagesById(messageIds)),
      clearAddress: (address) => patiently(kept.clearAddress(address))
    }))).pipe(Layer.provide(storage))
