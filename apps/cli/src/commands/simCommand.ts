/** The flags of `purser sim`. */
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { refused } from "../CommandFailed.ts"

/** `purser sim` */
export const simCommand = Command.make("sim", {
  port: Flag.Int("port").pipe(Flag.withDescription("The port on 127.0.0.1; 0 takes a free one"), Flag.withDefault(12111)),
  strict: Flag.Boolean("strict").pipe(Flag.withDescription("Hold only what was created, not every id that is asked for"), Flag.withDefault(false)),
  noIdempotency: Flag.Boolean("no-idempotency").pipe(Flag.withDescription("Ignore idempotency keys"), Flag.withDefault(false))
}, Effect.fnUntraced(function*(given) {
  if (given.port < 0 || given.port > 65_535) return yield* refused("--port must be from 0 to 65535")
  const { sim } = yield* Effect.promise(() => import("../handlers/sim.ts"))
  return yield* sim({ port: given.port, strict: given.strict, idempotency: !given.noIdempotency })
})).pipe(Command.withDescription("Run the Stripe simulator alone; its books are at /_sim/books"))
