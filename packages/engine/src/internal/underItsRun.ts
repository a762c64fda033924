/** Log lines about a request name the run that it belongs to, where that is known. */
import { type ChargeRequest, RunMark } from "@purser/core"
import { Effect } from "effect"

/** What is done for the request, with its run on every line. */
export const underItsRun = <A, E, R>(request: ChargeRequest, done: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
  const runId = RunMark.of(request)
  return runId === undefined ? done : Effect.annotateLogs(done, { runId })
}
