/** Lines of a live view out of cells: words, bars and sparklines that fit a width, with colour or without. */
import { plainText } from "@purser/core"

/** The colours of the sixteen that every terminal has. */
export type Color = "green" | "red" | "yellow" | "blue" | "magenta" | "cyan" | "gray"

/** A piece of a line. */
export interface Cell {
  readonly text: string
  readonly color?: Color
}

/** What a line is drawn for. */
export interface Look {
  readonly columns: number
  readonly color: boolean
}

const codes: Record<Color, number> = { green: 32, red: 31, yellow: 33, blue: 34, magenta: 35, cyan: 36, gray: 90 }

const paint = ({ color, text }: Cell, look: Look): string => look.color && color !== undefined ? `\u001b[${codes[color]}m${text}\u001b[0m` : text
const widthOf = (cells: ReadonlyArray<Cell>): number => cells.reduce((sum, { text }) => sum + text.length, 0)

/** Cells up to a width; the one that does not fit is cut. What others wrote cannot move the cursor. */
const fit = (cells: ReadonlyArray<Cell>, width: number): ReadonlyArray<Cell> => {
  const fitted: Array<Cell> = []
  let left = width
  for (const cell of cells) {
    if (left <= 0) break
    const said = plainText(cell.text.replaceAll(/\p{Cc}+/gu, " "))
    const text = said.length <= left ? said : `${said.slice(0, Math.max(0, left - 1))}…`
    fitted.push({ ...cell, text })
    left -= text.length
  }
  return fitted
}

/** One line: cells at the left, cells at the right edge. The right ones go before the left ones where both do not fit. */
export const line = (look: Look, left: ReadonlyArray<Cell>, right: ReadonlyArray<Cell> = []): string => {
  // The last column stays free: some terminals wrap when it is written.
  const width = look.columns - 1
  const end = fit(right, width)
  const room = width - widthOf(end) - (end.length > 0 ? 1 : 0)
  const begin = fit(left, room)
  const gap = end.length === 0 ? [] : [{ text: " ".repeat(width - widthOf(begin) - widthOf(end)) }]
  return [...begin, ...gap, ...end].map((cell) => paint(cell, look)).join("").trimEnd()
}

/** A part of a bar: how much, and how it looks; the glyph says it where there are no colours. */
export interface Part {
  readonly count: number
  readonly glyph: string
  readonly color?: Color
}

/** A bar of parts, `width` wide when their sum is the total. What is there at all has a cell, as long as there are cells. */
export const bar = (parts: ReadonlyArray<Part>, total: number, width: number): ReadonlyArray<Cell> => {
  const shown = parts.filter(({ count }) => count > 0)
  const exact = shown.map(({ count }) => total <= 0 ? 0 : count * width / total)
  const cells = exact.map((share) => Math.max(1, Math.floor(share)))
  const wanted = Math.min(width, Math.round(exact.reduce((sum, share) => sum + share, 0)))
  const used = () => cells.reduce((sum, count) => sum + count, 0)
  // What rounding left goes to whom it cost most; what a small part was given is taken from the largest.
  while (used() < wanted) {
    let most = 0
    for (let index = 1; index < cells.length; index++) if (exact[index]! - cells[index]! > exact[most]! - cells[most]!) most = index
    cells[most]! += 1
  }
  while (used() > width) {
    const largest = cells.indexOf(Math.max(...cells))
    cells[largest]! -= 1
  }
  return shown.map(({ color, glyph }, index) => ({ text: glyph.repeat(cells[index]!), ...(color === undefined ? {} : { color }) }))
}

const steps = "▁▂▃▄▅▆▇█"

/** The last values as a line of blocks, the highest of them full. */
export const sparkline = (values: ReadonlyArray<number>, width: number): string => {
  const last = values.slice(-width)
  const most = Math.max(...last, 0)
  return last.map((value) => steps[most <= 0 ? 0 : Math.min(7, Math.floor(value / most * 7.999))]).join("").padStart(width, " ")
}

/** `12,345`. */
export const figure = (count: number): string => Math.round(count).toLocaleString("en-US")

/** `1:02:03`, or `02:03`. */
export const clock = (elapsedMs: number): string => {
  const seconds = Math.max(0, Math.floor(elapsedMs / 1000))
  const two = (value: number) => String(value).padStart(2, "0")
  const rest = `${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`
  return seconds < 3600 ? rest : `${Math.floor(seconds / 3600)}:${rest}`
}

/** `52/s`, with a digit more where it is slow. */
export const perSecond = (rate: number): string => `${rate >= 9.95 || rate === 0 ? figure(rate) : rate.toFixed(1)}/s`
