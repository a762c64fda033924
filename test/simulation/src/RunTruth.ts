/** The register of runs, watched: what holders of runs write there is held against the ledger's rows in the same moment. It changes no answer. */
import { type ChargeKey, isRunOver, type Ledger, type RunLedger, type RunRegistry, type RunRowReport } from "@purser/core"
import { Effect } from "effect"

const isOpen = ({ state }: Pick<RunRowReport, "state">) => state === "staged" || state === "planned" || state === "claimed" || state === "attached"

/** All rows of a run as they stand. */
export const rowsOf = (book: RunLedger["Service"], runId: string) => Effect.orDie(book.report(runId, 0, 1000))

/** Rows that nobody has brought to an end yet; what a person had tried again, or the bank gave back, was at its end before. */
export const neverSettled = Effect.fnUntraced(function*(book: RunLedger["Service"], ledger: Ledger["Service"], runId: string) {
  const never: Array<ChargeKey> = []
  for (const row of (yield* rowsOf(book, runId)).filter(isOpen)) {
    const events = yield* Effect.orDie(ledger.events(row.chargeKey))
    if (events.every(({ to }) => isOpen({ state: to }))) never.push(row.chargeKey)
  }
  return never
})

/** The register as it is, and what is wrong about a change the moment it is made. `isWhole`: whether a run that is finished must have no row left. */
export const watchRegister = (
  register: RunRegistry["Service"], book: RunLedger["Service"], ledger: Ledger["Service"], violations: Array<string>, isWhole: boolean
): RunRegistry["Service"] => ({
  ...register,
  change: (change) =>
    Effect.gen(function*() {
      const changed = yield* register.change(change)
      if (changed === undefined || !isRunOver(change.to)) return changed
      if (change.to === "failed") violations.push(`run ${change.runId} failed: ${change.detail ?? ""}`)
      if (change.to === "finished" && isWhole) {
        const open = yield* neverSettled(book, ledger, change.runId)
        if (open.length > 0) violations.push(`run ${change.runId} says finished by ${change.actor}, and ${open.length} of its rows are open`)
      }
      return changed
    })
})
