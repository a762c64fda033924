/** `purser pause` and `purser resume`: the switch that stops all charging of a database. */
import { ChargePause, type Pause, type PauseAct, plainText } from "@purser/core"
import { Database } from "@purser/postgres"
import { Stores } from "@purser/purser"
import { DateTime, Effect } from "effect"
import { CommandFailed, exitStatus } from "../CommandFailed.ts"
import { note, out } from "../ui/Output.ts"

/** A pause in words. */
export const pauseText = ({ actor, cause, reason, sinceMs }: Pause): string =>
  plainText(`charging is paused since ${DateTime.formatIso(DateTime.makeUnsafe(sinceMs))} by ${cause === "person" ? actor : `an outage (${actor})`}: ${reason}`)

const announce = Effect.fnUntraced(function*(pauses: ReadonlyArray<Pause>) {
  for (const pause of pauses) yield* note(pauseText(pause))
  // Nobody else can open the embedded database while this command has it.
  const ends = (yield* Database).kind === "pglite" ? "stop this command, and `purser resume stripe`, then the same command again, ends it sooner" : "`purser resume stripe` ends it"
  yield* note(`waiting; ${ends}`)
})

/** Says when charging pauses, and when it goes on, as long as the scope lasts. */
export const watchPauses = Effect.gen(function*() {
  const { view, whenOpen, whenPaused } = yield* ChargePause
  yield* whenPaused.pipe(
    Effect.andThen(Effect.flatMap(view, announce)),
    Effect.andThen(whenOpen),
    Effect.andThen(note("charging goes on")),
    Effect.forever,
    Effect.forkScoped
  )
})

/**
 * Says that a command waits. Where no other process can end a person's pause (the embedded database), it ends with these words
 * instead of waiting for ever.
 */
export const waitIfPaused = Effect.fnUntraced(function*(nothingDone: string) {
  yield* watchPauses
  const pauses = yield* (yield* ChargePause).inForce
  if ((yield* Database).kind === "pglite" && pauses.some(({ cause }) => cause === "person")) {
    return yield* new CommandFailed({
      text: `${nothingDone} \`purser resume stripe\`, then the same command again, goes on.`,
      status: exitStatus.partial
    })
  }
})

/** Stops charging. */
export const pause = (act: PauseAct) =>
  Effect.gen(function*() {
    const switches = yield* ChargePause
    const changed = yield* switches.pause(act)
    if (!changed) yield* note("it was paused before; that pause stands")
    for (const found of yield* switches.inForce) yield* out(pauseText(found))
  }).pipe(Effect.provide(Stores.layerConfig))

/** Ends every pause, an outage's too: it comes back by itself when it has to. */
export const resume = (act: { readonly actor: string; readonly reason: string }) =>
  Effect.gen(function*() {
    const switches = yield* ChargePause
    const ended = [
      yield* switches.resume({ ...act, cause: "person" }),
      yield* switches.resume({ ...act, cause: "outage" })
    ]
    yield* out(ended.includes(true) ? "charging goes on" : "charging was not paused")
  }).pipe(Effect.provide(Stores.layerConfig))
