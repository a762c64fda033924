/**
 * Another attempt of the rows of a run that ended unpaid: the same act as `retryCharge`, for many. It charges none of them: those that were moved
 * are rows to be charged like others, for whoever dispatches the run.
 */
import { type ChargeKey, FaultPoint, Ledger, type LedgerError, RunLedger, SpendCap, type SpendCapError, type UnpaidRow } from "@purser/core"
import { type Config, Effect, Option } from "effect"
import { untilStoreAnswers } from "./internal/backoff.ts"
import { reopenInRoom } from "./internal/reopenInRoom.ts"
import { makeRoom } from "./internal/room.ts"
import { PipelineOptions } from "./PipelineOptions.ts"
import type { RetryAct } from "./RetryCharge.ts"

/** Rows that take their room together: the stores answer so many with one statement each. Where a process dies between the two, so many may hold room unused. */
const pageSize = 500

/** What became of the rows. */
export interface RetriedRows {
  /** Rows that were moved. */
  readonly moved: number
  /** Charges that are asked for again: those that were moved, and those that others had moved meanwhile. */
  readonly retried: ReadonlySet<ChargeKey>
  /** Rows that stand as they stood. */
  readonly withoutRoom: number
}

/** What is to be asked for again, by whom and why. */
export interface RetryRowsInput extends RetryAct {
  readonly runId: string
  readonly states: ReadonlyArray<UnpaidRow["state"]>
  /** Told of each row for which there was no room, in line order, with the cap's refusal. */
  readonly onNoRoom: (row: UnpaidRow, error: SpendCapError) => Effect.Effect<void>
}

/**
 * Moves each row of the run in these states to its next attempt, if there is room for it under the cap; the others stand as they stood. It fails
 * where a store is away; rows that were moved by then are moved.
 */
export const retryRows = Effect.fn("retryRows")(function*(
  { onNoRoom, runId, states, ...act }: RetryRowsInput
): Effect.fn.Return<RetriedRows, LedgerError | SpendCapError | Config.ConfigError, Ledger | RunLedger | SpendCap> {
  const ledger = yield* Ledger
  const cap = yield* SpendCap
  const book = yield* RunLedger
  const given = yield* Effect.serviceOption(PipelineOptions)
  const settings = Option.isSome(given) ? given.value : yield* PipelineOptions.fromConfig
  const { release, releaseEnded } = makeRoom({ cap, fault: yield* FaultPoint, ledger, settings, step: (_name, effect) => effect })
  const retried = new Set<ChargeKey>()
  let moved = 0
  let withoutRoom = 0
  for (let afterLine = 0;;) {
    const rows = yield* book.unpaid(runId, states, afterLine, pageSize)
    if (rows.length === 0) break
    afterLine = rows.at(-1)!.line
    // The room of old attempts goes back before new ones ask for theirs.
    yield* Effect.forEach(yield* ledger.releaseDue(2 * pageSize), ({ attempt, chargeKey }) => release(chargeKey, attempt), { concurrency: 64, discard: true })
    // Whoever stops the run does not part the room from the row.
    const page = yield* Effect.uninterruptible(reopenInRoom(rows, act))
    for (const { charges, moved: some } of page.asked) {
      moved += some
      for (const { chargeKey } of charges) retried.add(chargeKey)
      // The room is theirs who moved a row, but where their attempt has come to its end unpaid; which rows those are is not told.
      if (some < charges.length) {
        yield* Effect.forEach(charges, ({ chargeKey }) => Effect.flatMap(untilStoreAnswers(settings, ledger.find(chargeKey)), releaseEnded), { concurrency: 64, discard: true })
      }
    }
    withoutRoom += page.withoutRoom.length
    for (const { charge, error } of page.withoutRoom) yield* onNoRoom(charge, error)
    if (rows.length < pageSize) break
  }
  return { moved, retried, withoutRoom }
})
