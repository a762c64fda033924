/** `purser dead-letters`: messages that no worker could serve. */
import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"

const load = Effect.promise(() => import("../handlers/deadLetters.ts"))

/** `purser dead-letters list | show | discard` */
export const deadLettersCommand = Command.make("dead-letters").pipe(
  Command.withDescription("Look at the messages that could not be read or were not let in"),
  Command.withSubcommands([
    Command.make("list", {
      limit: Flag.Int("limit").pipe(Flag.withDescription("How many, newest first"), Flag.withDefault(50)),
      json: Flag.Boolean("json").pipe(Flag.withDescription("Print JSON, with the bytes in base64"), Flag.withDefault(false))
    }, Effect.fnUntraced(function*(given) {
      return yield* (yield* load).list(given)
    })).pipe(Command.withDescription("List them: how often, when, from whom, why")),
    Command.make("show", { digest: Argument.String("DIGEST").pipe(Argument.withDescription("The beginning of a digest, as listed")) }, Effect.fnUntraced(function*(given) {
      return yield* (yield* load).show(given.digest)
    })).pipe(Command.withDescription("Show one with its bytes")),
    Command.make("discard", { digests: Argument.String("DIGEST").pipe(Argument.variadic({ min: 1 })) }, Effect.fnUntraced(function*(given) {
      return yield* (yield* load).discard(given.digests)
    })).pipe(Command.withDescription("Throw some away"))
  ])
)
