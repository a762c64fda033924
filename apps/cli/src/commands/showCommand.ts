/** The flags of `purser show`. */
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { identityFlags, readIdentity } from "./identityFlags.ts"

/** `purser show` */
export const showCommand = Command.make("show", {
  ...identityFlags,
  json: Flag.Boolean("json").pipe(Flag.withDescription("Print one JSON object as the last line"), Flag.withDefault(false))
}, Effect.fnUntraced(function*(given) {
  const identity = yield* readIdentity(given)
  const { show } = yield* Effect.promise(() => import("../handlers/show.ts"))
  return yield* show(identity, given.json)
})).pipe(Command.withDescription("Show one charge, or without --item all items of a customer with their sum: its state, what can be done next, its refunds, its revisions and its trail"))
