/** The flags of `purser pause` and `purser resume`. */
import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { actorFlag, reasonFlag } from "./recordFlags.ts"

const target = Argument.Literals("WHAT", ["stripe"]).pipe(Argument.withDescription("What rests: stripe, all charging of this database"))
const load = Effect.promise(() => import("../handlers/pause.ts"))

/** `purser pause stripe` */
export const pauseCommand = Command.make("pause", {
  target,
  reason: reasonFlag.pipe(Flag.withDescription("Why, for the record")),
  actor: actorFlag
}, Effect.fnUntraced(function*({ actor, reason }) {
  return yield* (yield* load).pause({ cause: "person", actor, reason })
})).pipe(
  Command.withDescription("Stop charging in every process on this database; work queues up until it is resumed"),
  Command.withExamples([{ command: "purser pause stripe --reason 'Stripe reports an incident'", description: "Calls that are under way end; no other is made" }])
)

/** `purser resume stripe` */
export const resumeCommand = Command.make("resume", {
  target,
  reason: reasonFlag.pipe(Flag.withDescription("Why, for the record"), Flag.withDefault("")),
  actor: actorFlag
}, Effect.fnUntraced(function*({ actor, reason }) {
  return yield* (yield* load).resume({ actor, reason })
})).pipe(Command.withDescription("Let charging go on, whoever paused it"))
