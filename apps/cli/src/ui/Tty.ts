/** Whether a person sits in front of the program. Tests say so themselves. */
import { Context } from "effect"

/** What is known of the terminal. */
export interface TtyInfo {
  /** Questions can be asked and answered. */
  readonly interactive: boolean
  /** Standard error can show lines that are drawn again and again. */
  readonly live: boolean
  /** Standard output is the same terminal. */
  readonly output: boolean
  readonly columns: number
  readonly rows: number
  /** Colours are wanted; https://no-color.org says when they are not. */
  readonly color: boolean
}

const live = process.stderr.isTTY === true && process.env["TERM"] !== "dumb"

/** A terminal that nobody has told its size says 0. */
const sizeOf = (said: number | undefined, usual: number): number => said === undefined || said === 0 ? usual : said

export const Tty = Context.Reference<TtyInfo>("@purser/cli/Tty", {
  defaultValue: () => ({
    interactive: process.stdin.isTTY === true && process.stderr.isTTY === true,
    live,
    output: live && process.stdout.isTTY === true,
    color: live && (process.env["NO_COLOR"] ?? "") === "",
    // A window that is made smaller is smaller at the next look.
    get columns() {
      return sizeOf(process.stderr.columns, 80)
    },
    get rows() {
      return sizeOf(process.stderr.rows, 24)
    }
  })
})
