/** The flags of `purser retry`. */
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { identityFlags, readIdentity } from "./identityFlags.ts"

/** `purser retry` */
export const retryCommand = Command.make("retry", {
  ...identityFlags,
  reason: Flag.String("reason").pipe(Flag.withDescription("Why, for the record")),
  actor: Flag.String("actor").pipe(Flag.withDescription("Who, for the record (default: purser retry)"), Flag.withDefault("purser retry")),
  dryRun: Flag.Boolean("dry-run").pipe(Flag.withDescription("Say what would move, and move nothing"), Flag.withDefault(false))
}, Effect.fnUntraced(function*(given) {
  const identity = yield* readIdentity(given)
  const { retry } = yield* Effect.promise(() => import("../handlers/retry.ts"))
  return yield* retry(identity, given)
})).pipe(
  Command.withDescription("Try a declined or rejected charge again, once, with a reason that is kept"),
  Command.withExamples([
    { command: "purser retry cust_123 2026-07 --item base --reason 'new card'", description: "After the customer has a new default card" }
  ])
)
