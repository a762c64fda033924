/** States of charges as the live views show them: one glyph, one colour and one word each, everywhere the same. */
import type { CapReport } from "@purser/core"
import { Money, percentOf } from "@purser/core"
import { bar, type Cell, type Color, figure, line, type Look, perSecond, sparkline } from "./Panel.ts"
import type { Rates } from "./Rates.ts"

/** What the views tell apart. */
export type ShownState = "paid" | "declined" | "rejected" | "processing" | "action" | "attention" | "open"

const looks: Record<ShownState, { readonly glyph: string; readonly color: Color; readonly word: string }> = {
  paid: { glyph: "█", color: "green", word: "paid" },
  processing: { glyph: "▓", color: "blue", word: "processing" },
  action: { glyph: "◆", color: "cyan", word: "to authenticate" },
  declined: { glyph: "▒", color: "yellow", word: "declined" },
  rejected: { glyph: "■", color: "magenta", word: "rejected" },
  attention: { glyph: "!", color: "red", word: "for a person" },
  open: { glyph: "░", color: "gray", word: "open" }
}

/** Charges by what is shown of them. */
export type ShownCounts = Readonly<Partial<Record<ShownState, number>>>

const order = Object.keys(looks) as ReadonlyArray<ShownState>
const parts = (counts: ShownCounts) => order.map((state) => ({ ...looks[state], count: counts[state] ?? 0 }))

/** The ledger's states, and a run's, by what is shown of them. */
export const shownState = (state: string): ShownState => {
  switch (state) {
    case "succeeded":
      return "paid"
    case "declined":
    case "processing":
      return state
    case "requires_action":
      return "action"
    case "rejected":
    case "canceled":
      return "rejected"
    case "conflict":
    case "quarantined":
      return "attention"
    default:
      return "open"
  }
}

/** All states as one bar. `right` stands behind it. */
export const statesBar = (look: Look, counts: ShownCounts, total: number, right: string): string => {
  const width = Math.max(10, look.columns - 2 - right.length - 1)
  return line(look, bar(parts(counts), total, width), right === "" ? [] : [{ text: right }])
}

/** The counts behind their glyphs; words that do not fit are left out from the end, whole. */
export const legend = (look: Look, counts: ShownCounts, more: ReadonlyArray<string> = []): string => {
  const entries: Array<ReadonlyArray<Cell>> = parts(counts).filter(({ count }) => count > 0).map(({ color, count, glyph, word }) => [
    { text: glyph, color }, { text: ` ${figure(count)} ${word}` }
  ])
  for (const text of more) entries.push([{ text, color: "gray" }])
  const cells: Array<Cell> = []
  let width = 0
  for (const entry of entries) {
    const length = entry.reduce((sum, { text }) => sum + text.length, 0) + (cells.length > 0 ? 2 : 0)
    if (width + length > look.columns - 1) break
    cells.push(...(cells.length > 0 ? [{ text: "  " }] : []), ...entry)
    width += length
  }
  return line(look, cells)
}

/** The rate now, as it was, and what is said beside it. */
export const rateLine = (look: Look, name: string, rates: Rates, right: string): string => {
  const now = perSecond(rates.now())
  const width = Math.max(8, Math.min(60, look.columns - name.length - now.length - right.length - 6))
  return line(look, [{ text: `${name} ` }, { text: sparkline(rates.series(), width), color: "cyan" }, { text: ` ${now}` }], right === "" ? [] : [{ text: right, color: "gray" }])
}

const shareOf = ({ capMinor, reservedMinor }: CapReport) => capMinor === 0n ? 1 : Number(reservedMinor) / Number(capMinor)

/** How much of a cap is used, in percent, as the console says it too. */
export const capShare = ({ capMinor, reservedMinor }: Pick<CapReport, "capMinor" | "reservedMinor">): string => {
  const share = percentOf(reservedMinor, capMinor)
  return share === "–" ? share : `${share}%`
}

/** How full a cap is. */
export const capLine = (look: Look, cap: CapReport): string => {
  const { billingPeriod, capMinor, closed, currency, reservedMinor } = cap
  const share = shareOf(cap)
  const color: Color = share >= 0.98 ? "red" : share >= 0.9 ? "yellow" : "green"
  const money = (minor: bigint) => Money.formatMinor(minor, currency)
  const right = `${money(reservedMinor)} of ${money(capMinor)} ${currency}, ${capShare(cap)}${closed ? ", closed" : ""}`
  const name = `cap  ${billingPeriod} `
  const width = Math.max(6, look.columns - 2 - name.length - right.length - 1)
  // Full is full, and not nearly.
  const used = share >= 1 ? width : Math.min(width - 1, Math.ceil(share * width))
  return line(look, [{ text: name }, { text: "█".repeat(used), color }, { text: "·".repeat(width - used), color: "gray" }], [{ text: right }])
}

const capsShown = 3

/** Lines of the caps that matter first: those in use, then the fullest; and how many more there are. */
export const capLines = (look: Look, caps: ReadonlyArray<CapReport>, isInUse: (cap: CapReport) => boolean = () => false): ReadonlyArray<string> => {
  const sorted = caps.toSorted((a, b) => Number(isInUse(b)) - Number(isInUse(a)) || Number(a.closed) - Number(b.closed) || shareOf(b) - shareOf(a))
  const more = sorted.length - capsShown
  return [
    ...sorted.slice(0, capsShown).map((cap) => capLine(look, cap)),
    ...(more <= 0 ? [] : [line(look, [{ text: `… and ${more} more ${more === 1 ? "cap" : "caps"}`, color: "gray" }])])
  ]
}
