/** Rows of a run that were to be tried again and stand as they stood, since the cap has no room for another attempt. */
import type { SpendCapError, UnpaidRow } from "@purser/core"
import { Effect } from "effect"
import { note } from "../ui/Output.ts"

const shownRows = 20

/** Names the first of them as they are found, and counts the others. */
export const noRoomNotes = () => {
  let found = 0
  return {
    told: ({ attempt, line, request: { billingPeriod, customerId, item }, state }: UnpaidRow, { message }: SpendCapError) =>
      Effect.suspend(() => found++ < shownRows
        ? note(`line ${line}: ${customerId} ${billingPeriod}${item === undefined ? "" : ` ${item}`} stays ${state} at attempt ${attempt}: ${message}`)
        : Effect.void),
    summary: (rows: number) =>
      rows === 0 ? Effect.void : Effect.andThen(
        rows > shownRows ? note(`… and ${rows - shownRows} more without room`) : Effect.void,
        note(`${rows} ${rows === 1 ? "charge stays as it was" : "charges stay as they were"}: purser cap raise or purser cap reopen makes room`)
      )
  }
}

/** The same, at the end of the account. */
export const noRoomText = (rows: number): string =>
  rows === 0 ? "" : ` For ${rows} of them there was no room under the cap: nobody was asked again, and they stay as they were.`
