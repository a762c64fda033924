/** How a command ends when it does not end well: what the user reads, and the exit status. */
import { Data, Runtime } from "effect"

/** Exit statuses of the machine contract. */
export const exitStatus = {
  /** Input or configuration refused; nothing was sent. */
  refused: 1,
  /** Finished with rows that are not paid. */
  partial: 2
} as const

/** A failure that the user can read; it is printed once, without a stack. */
export class CommandFailed extends Data.TaggedError("CommandFailed")<{
  readonly text: string
  readonly status: number
}> {
  override get message() {
    return this.text
  }
  override readonly [Runtime.errorExitCode] = this.status
  override readonly [Runtime.errorReported] = false
}

/** Input or configuration refused, nothing sent. */
export const refused = (text: string) => new CommandFailed({ text, status: exitStatus.refused })
