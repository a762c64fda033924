/** A look of `purser status --watch` for programs. */
import { type StatusSeen, timeOf } from "../ui/StatusView.ts"
import { capRows } from "./cap.ts"

/** One look as JSON: `at` is when it was answered, and `stale` says that none was since. */
export const statusJson = ({ atMs, awaySinceMs, look }: StatusSeen, rate: number): string =>
  JSON.stringify({
    at: timeOf(atMs),
    stale: awaySinceMs !== undefined,
    perSecond: rate,
    charges: look.totals.map((total) => ({ ...total, amountMinor: Number(total.amountMinor), receivedMinor: Number(total.receivedMinor) })),
    caps: capRows(look.caps),
    pauses: look.pauses
  })
