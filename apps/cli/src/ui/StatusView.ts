/** How all charges stand, looked at again and again: a block on a terminal, one line a look elsewhere. */
import { type CapReport, type Currency, Money, type Pause, type StateTotal } from "@purser/core"
import { DateTime } from "effect"
import { capLines, capShare, legend, rateLine, type ShownCounts, type ShownState, shownState, statesBar } from "./ChargeStates.ts"
import { figure, line, type Look, perSecond } from "./Panel.ts"
import type { Rates } from "./Rates.ts"

/** What one look found. */
export interface StatusLook {
  readonly totals: ReadonlyArray<StateTotal>
  readonly caps: ReadonlyArray<CapReport>
  readonly pauses: ReadonlyArray<Pause>
}

/** The last look that was answered, and since when none is. */
export interface StatusSeen {
  readonly look: StatusLook
  readonly atMs: number
  readonly awaySinceMs: number | undefined
}

/** What is known after another look: what it found, or what the last one did. */
export const seenAfter = (before: StatusSeen, found: StatusLook | undefined, nowMs: number): StatusSeen =>
  found === undefined ? { ...before, awaySinceMs: before.awaySinceMs ?? nowMs } : { look: found, atMs: nowMs, awaySinceMs: undefined }

/** A moment as it is shown. */
export const timeOf = (atMs: number): string => `${DateTime.formatIso(DateTime.makeUnsafe(atMs)).slice(0, 19)}Z`

const awayText = ({ atMs, awaySinceMs }: StatusSeen): string | undefined =>
  awaySinceMs === undefined ? undefined : `stale since ${timeOf(atMs)}, ledger away since ${timeOf(awaySinceMs)}`

/** Charges of one period and currency. */
export interface StatusGroup {
  readonly period: string
  readonly currency: Currency
  readonly counts: ShownCounts
  readonly charges: number
  readonly settled: number
  readonly billedMinor: bigint
  readonly receivedMinor: bigint
}

/** Groups, those with open charges first, then the newest; quarantined charges are shown as such. */
export const groupsOf = (totals: ReadonlyArray<StateTotal>): ReadonlyArray<StatusGroup> =>
  [...Map.groupBy(totals, ({ billingPeriod, currency }) => `${billingPeriod} ${currency}`).values()].map((some): StatusGroup => {
    const counts: Partial<Record<ShownState, number>> = {}
    const add = (state: ShownState, charges: number) => void (counts[state] = (counts[state] ?? 0) + charges)
    for (const { charges, quarantined, state } of some) {
      add(shownState(state), charges - quarantined)
      add("attention", quarantined)
    }
    const charges = some.reduce((sum, total) => sum + total.charges, 0)
    return {
      period: some[0]!.billingPeriod,
      currency: some[0]!.currency as Currency,
      counts,
      charges,
      settled: charges - (counts.open ?? 0) - (counts.attention ?? 0),
      billedMinor: some.reduce((sum, { amountMinor }) => sum + amountMinor, 0n),
      receivedMinor: some.reduce((sum, { receivedMinor }) => sum + receivedMinor, 0n)
    }
  }).toSorted((a, b) =>
    Number((b.counts.open ?? 0) > 0) - Number((a.counts.open ?? 0) > 0) || (a.period < b.period ? 1 : a.period > b.period ? -1 : a.currency < b.currency ? -1 : 1))

/** Charges that are settled, of all groups. */
export const settledOf = (groups: ReadonlyArray<StatusGroup>): number => groups.reduce((sum, { settled }) => sum + settled, 0)

const capsOf = ({ currency, period }: StatusGroup, caps: ReadonlyArray<CapReport>) =>
  caps.filter((cap) => cap.billingPeriod === period && cap.currency === currency)

const pauseLine = (look: Look, { actor, cause, reason }: Pause): string =>
  line(look, [{ text: "paused ", color: "red" }, { text: `by ${cause === "outage" ? "an outage" : actor}: ${reason}` }])

/** The block, in at most as many rows as there are. */
export const statusLines = (
  look: Look & { readonly rows: number },
  view: { readonly seen: StatusSeen; readonly title: string; readonly nowMs: number; readonly rates: Rates }
): ReadonlyArray<string> => {
  const { nowMs, rates, seen, title } = view
  const { caps, pauses, totals } = seen.look
  const away = awayText(seen)
  const groups = groupsOf(totals)
  const open = groups.reduce((sum, { counts }) => sum + (counts.open ?? 0), 0)
  const head = [
    line(look, [{ text: title }], [{ text: timeOf(nowMs), color: "gray" }]),
    ...(away === undefined ? [] : [line(look, [{ text: away, color: "red" }])]),
    rateLine(look, "settled", rates, `${figure(open)} open`),
    ...pauses.map((pause) => pauseLine(look, pause))
  ]
  const blocks = groups.map((group) => [
    "",
    line(look, [{ text: `${group.period} ${group.currency}`, color: "cyan" }, {
      text: `  ${Money.formatMinor(group.receivedMinor, group.currency)} received of ${Money.formatMinor(group.billedMinor, group.currency)} billed`
    }]),
    statesBar(look, group.counts, group.charges, `${figure(group.settled)}/${figure(group.charges)}`),
    legend(look, group.counts),
    ...capLines(look, capsOf(group, caps))
  ])
  const rows = Math.max(8, look.rows - 1)
  const shown: Array<string> = [...head]
  for (const [index, block] of blocks.entries()) {
    const rest = blocks.length - index
    if (shown.length + block.length + (rest > 1 ? 1 : 0) > rows) {
      shown.push(line(look, [{ text: `… and ${rest} more; name a period to see it alone`, color: "gray" }]))
      break
    }
    shown.push(...block)
  }
  return groups.length === 0 ? [...head, "", line(look, [{ text: "no charges", color: "gray" }])] : shown
}

/** One line a group without control sequences. */
export const statusText = (nowMs: number, seen: StatusSeen, rate: number): ReadonlyArray<string> => {
  const { caps, pauses, totals } = seen.look
  const now = timeOf(nowMs)
  const groups = groupsOf(totals)
  const away = awayText(seen)
  const told = `${pauses.length === 0 ? "" : `, paused by ${pauses.map(({ cause }) => cause).join(" and ")}`}${away === undefined ? "" : `, ${away}`}`
  return groups.length === 0 ? [`${now} no charges${told}`] : groups.map((group) => {
    const states = Object.entries(group.counts).filter(([, count]) => count > 0).map(([state, count]) => `${count} ${state}`).join(", ")
    const full = capsOf(group, caps).map((cap) => `, cap ${capShare(cap)}`).join("")
    return `${now} ${group.period} ${group.currency}: ${group.charges} charges: ${states}${full}, ${perSecond(rate)}${told}`
  })
}
