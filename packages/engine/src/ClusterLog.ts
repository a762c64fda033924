/**
 * What the cluster's library says, as an operator reads it. A database that is slow for a moment, a runner that was frozen, one that
 * leaves: the library writes a stack trace for each of its shards then. That is a line, and the same line again is none. What may be a
 * bug keeps its trace.
 */
import { Cause, Logger } from "effect"

const againAfterMs = 10_000

/** The words of the innermost cause: what wraps it says no more than where it came from. */
export const troubleWords = (error: unknown): string => {
  if (typeof error !== "object" || error === null) return String(error)
  const inner = "reason" in error && typeof error.reason === "object" ? error.reason : "cause" in error ? error.cause : undefined
  if (inner !== undefined && inner !== null && inner !== error) return troubleWords(inner)
  return "message" in error && typeof error.message === "string" && error.message !== "" ? error.message : String(error)
}

const isExpected = (reason: Cause.Reason<unknown>): boolean =>
  !Cause.isDieReason(reason) || (reason.defect instanceof Error && /^Entity type '.*' not registered$/.test(reason.defect.message))

const textOf = (reason: Cause.Reason<unknown>): string =>
  Cause.isInterruptReason(reason) ? "interrupted" : troubleWords(Cause.isDieReason(reason) ? reason.defect : reason.error).replaceAll(/\s+/g, " ")

/** The same loggers, for what the cluster and what is built on it say. */
export const clusterLoggers = (loggers: ReadonlySet<Logger.Logger<unknown, unknown>>): ReadonlySet<Logger.Logger<unknown, unknown>> => {
  const said = new Map<string, number>()
  return new Set([...loggers].map((logger, index) =>
    Logger.make<unknown, unknown>((entry) => {
      const { reasons } = entry.cause
      if (reasons.length === 0 || !reasons.every(isExpected)) return logger.log(entry)
      const words = Array.isArray(entry.message) ? entry.message : [entry.message]
      const message = [[...words.map(String), [...new Set(reasons.map(textOf))].join("; ")].filter((text) => text !== "").join(": ")]
      const key = `${index} ${message[0]}`
      const atMs = entry.date.getTime()
      if (atMs - (said.get(key) ?? -againAfterMs) < againAfterMs) return undefined
      if (said.size > 1000) said.clear()
      said.set(key, atMs)
      return logger.log({ ...entry, message, cause: Cause.empty })
    })))
}
