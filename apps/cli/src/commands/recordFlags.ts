/** Flags whose texts go on the record, and so on the screens of others: who acts, and why. */
import { plainText, plainTextProblem } from "@purser/core"
import { Effect } from "effect"
import { Flag } from "effect/cli"
import { userInfo } from "node:os"

const plain = (name: string) => Flag.String(name).pipe(Flag.filter((text) => plainTextProblem(text) === undefined, (text) => `--${name} ${plainTextProblem(text) ?? ""}`))

/** Whoever runs the command, as the system knows them. */
const userName = Effect.map(Effect.orElseSucceed(Effect.try(() => userInfo().username), () => ""), (name) => name === "" ? "operator" : plainText(name))

/** `--actor`: a person, whatever command they use. */
export const actorFlag: Flag.Flag<string> = plain("actor").pipe(
  Flag.withDescription("Who, for the record (default: your user name)"),
  Flag.withDefault(userName)
)

/** `--reason` */
export const reasonFlag: Flag.Flag<string> = plain("reason")
