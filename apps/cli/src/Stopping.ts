/** How a process takes being stopped. */
import { Context } from "effect"

/** A command that serves sets `isProperEnd` once it is up: from then on being stopped is a success. */
export const Stopping = Context.Reference<{ isProperEnd: boolean }>("@purser/cli/Stopping", {
  defaultValue: () => ({ isProperEnd: false })
})
