/** `purser key CUSTOMER PERIOD`: the idempotency key of an identity. */
import { chargeKeyOf } from "@purser/core"
import { Effect } from "effect"
import { Command } from "effect/cli"
import { out } from "../ui/Output.ts"
import { identityFlags, readIdentity } from "./identityFlags.ts"

/** `purser key` */
export const keyCommand = Command.make("key", identityFlags, Effect.fnUntraced(function*(given) {
  yield* out(chargeKeyOf(yield* readIdentity(given)))
})).pipe(Command.withDescription("Print the idempotency key of a customer and period"))
