/**
 * The contract of the stash of a run: what its stages make of its input, chunk by chunk, so that a stage which ran is not run
 * again and its result needs no place in the journal of a workflow. It is scratch: a run that is over has none.
 */
import { Context, Effect, Layer } from "effect"
import type { LedgerError } from "./LedgerError.ts"

/** Where a chunk lies: after which stage of which round. Stage 0 is the source. */
export interface StashPlace {
  readonly runId: string
  readonly round: number
  readonly stage: number
}

/** The stash. Every method needs nothing and fails with `LedgerError` only. */
export class RunStash extends Context.Service<RunStash, {
  /** Keeps a chunk; one that is there is replaced. `body` is JSON. */
  readonly put: (place: StashPlace, chunk: number, body: string) => Effect.Effect<void, LedgerError>
  /** A chunk, or undefined. */
  readonly get: (place: StashPlace, chunk: number) => Effect.Effect<string | undefined, LedgerError>
  /** Forgets the chunks from `fromChunk` on; all of them for 0. */
  readonly cut: (place: StashPlace, fromChunk: number) => Effect.Effect<void, LedgerError>
  /** Forgets everything of a run. */
  readonly drop: (runId: string) => Effect.Effect<void, LedgerError>
}>()("@purser/core/RunStash") {
  /** A stash in memory. */
  static readonly layerMemory: Layer.Layer<RunStash> = Layer.sync(RunStash, () => {
    const chunks = new Map<string, string>()
    const key = ({ round, runId, stage }: StashPlace, chunk: number) => JSON.stringify([runId, round, stage, chunk])
    const forget = (test: (runId: string, round: number, stage: number, chunk: number) => boolean) =>
      Effect.sync(() => {
        for (const at of chunks.keys()) {
          const [runId, round, stage, chunk] = JSON.parse(at) as [string, number, number, number]
          if (test(runId, round, stage, chunk)) chunks.delete(at)
        }
      })
    return {
      put: (place, chunk, body) => Effect.sync(() => void chunks.set(key(place, chunk), body)),
      get: (place, chunk) => Effect.sync(() => chunks.get(key(place, chunk))),
      cut: (place, fromChunk) =>
        forget((runId, round, stage, chunk) => runId === place.runId && round === place.round && stage === place.stage && chunk >= fromChunk),
      drop: (runId) => forget((one) => one === runId)
    }
  })
}
