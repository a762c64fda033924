/**
 * Which run a request belongs to, for log lines and spans: beside the request and not in it, like its trace, so that two
 * requests stay equal. It decides nothing, and a request without it is as good.
 */
import type { ChargeRequest } from "./ChargeRequest.ts"
import { makeBeside } from "./internal/beside.ts"

const runs = makeBeside<ChargeRequest, { runId: string }>()

/** The run of a request. */
export const RunMark = {
  /** The run, when somebody has said it. */
  of: (request: ChargeRequest): string | undefined => runs.of(request)?.runId,

  /** Says it; answers the same request. */
  on: (request: ChargeRequest, runId: string): ChargeRequest => {
    const said = runs.of(request)
    if (said === undefined) runs.put(request, { runId })
    else said.runId = runId
    return request
  },

  /** Whether a value of a message can be one; a stranger's text goes into logs, so that it is short and plain. */
  isRunId: (value: unknown): value is string => typeof value === "string" && /^[\x21-\x7e]{1,100}$/.test(value)
} as const
