/** Whether a person sits in front of the program. Tests say so themselves. */
import { Context } from "effect"

/** What is known of the terminal. */
export interface TtyInfo {
  /** Questions can be asked and answered. */
  readonly interactive: boolean
  /** Standard error can show a line that is drawn again and again. */
  readonly live: boolean
  readonly columns: number
}

export const Tty = Context.Reference<TtyInfo>("@purser/cli/Tty", {
  defaultValue: () => ({
    interactive: process.stdin.isTTY === true && process.stderr.isTTY === true,
    live: process.stderr.isTTY === true && process.env["TERM"] !== "dumb",
    columns: process.stderr.columns ?? 80
  })
})
