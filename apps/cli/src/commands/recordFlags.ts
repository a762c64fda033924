/** Flags whose texts go on the record, and so on the screens of others: who acts, and why. */
import { plainTextProblem } from "@purser/core"
import { Flag } from "effect/cli"

const plain = (name: string) => Flag.String(name).pipe(Flag.filter((text) => plainTextProblem(text) === undefined, (text) => `--${name} ${plainTextProblem(text) ?? ""}`))

/** `--actor` */
export const actorFlag: Flag.Flag<string> = plain("actor")

/** `--reason` */
export const reasonFlag: Flag.Flag<string> = plain("reason")
