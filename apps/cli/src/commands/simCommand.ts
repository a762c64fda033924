/** The flags of `purser sim`. */
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { portFlag } from "./portFlag.ts"

/** `purser sim` */
export const simCommand = Command.make("sim", {
  port: portFlag.pipe(Flag.withDescription("The port on 127.0.0.1; 0 takes a free one"), Flag.withDefault(12111)),
  strict: Flag.Boolean("strict").pipe(Flag.withDescription("Hold only what was created, not every id that is asked for"), Flag.withDefault(false)),
  noIdempotency: Flag.Boolean("no-idempotency").pipe(Flag.withDescription("Ignore idempotency keys"), Flag.withDefault(false))
}, Effect.fnUntraced(function*(given) {
  const { sim } = yield* Effect.promise(() => import("../handlers/sim.ts"))
  return yield* sim({ port: given.port, strict: given.strict, idempotency: !given.noIdempotency })
})).pipe(Command.withDescription("Run the Stripe simulator alone; its books are at /_sim/books"))
