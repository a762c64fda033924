/** What moves: one connection for the page, taken up again when it breaks, and what the last minutes looked like. */
import { Cause, Duration, Effect, Fiber, Schedule, Stream } from "effect"
import { useSyncExternalStore } from "react"
import { ConsoleClient } from "../src/ConsoleClient.ts"
import type { Pulse } from "../src/api/Shapes.ts"
import { isTagged, renew, runtime } from "./client.ts"

/** How the connection stands, the last pulse, and how many events there were in each second of the last two minutes. */
export interface Live {
  /** `away`: the console answers, and its ledger does not. */
  readonly link: "connecting" | "live" | "lost" | "away"
  readonly pulse: Pulse | null
  /** Grows with every pulse that brought something. */
  readonly moves: number
  /** Grows with every pulse. */
  readonly beats: number
  readonly perSecond: ReadonlyArray<number>
}

const seconds = 90
/** A console that lives is heard of every three seconds, whether something moves or not; one that is frozen keeps its connection open. */
const silence = Duration.seconds(10)
let state: Live = { link: "connecting", pulse: null, moves: 0, beats: 0, perSecond: [] }
const listeners = new Set<() => void>()
const set = (next: Partial<Live>) => {
  state = { ...state, ...next }
  for (const listener of listeners) listener()
}

let lastAt = 0
const take = (pulse: Pulse) => {
  const moved = Object.values(pulse.moved).reduce((sum, n) => sum + n, 0)
  const now = Date.now()
  const passed = lastAt === 0 ? 1 : Math.min(seconds, Math.round((now - lastAt) / 1000))
  let perSecond = [...state.perSecond]
  if (passed >= 1) {
    perSecond.push(...Array.from({ length: passed }, () => 0))
    lastAt = now
  }
  perSecond = perSecond.slice(-seconds)
  if (perSecond.length > 0) perSecond[perSecond.length - 1]! += moved
  set({ link: "live", pulse, beats: state.beats + 1, moves: state.moves + (moved > 0 ? 1 : 0), perSecond })
}

/** Follows until it is stopped. */
export const follow = (): (() => void) => {
  let isFirst = true
  const follows = Effect.gen(function*() {
    const client = yield* ConsoleClient
    // Another console may answer now, or this one no longer know who looks: what is called live can be acted on.
    if (!isFirst) yield* renew
    isFirst = false
    const pulses = yield* Effect.timeout(client.session.live(), silence)
    const heard = Stream.timeoutOrElse(pulses, { duration: silence, orElse: () => Stream.fail(new Cause.TimeoutError()) })
    yield* Stream.runForEach(heard, (pulse) => Effect.sync(() => take(pulse)))
  }).pipe(
    Effect.andThen(Effect.sync(() => set({ link: "lost" }))),
    Effect.tapError((error) => Effect.sync(() => set({ link: isTagged(error, "Away") ? "away" : "lost" }))),
    Effect.ignore,
    Effect.repeat(Schedule.spaced("2 seconds"))
  )
  const fiber = runtime.runFork(follows)
  return () => void runtime.runFork(Fiber.interrupt(fiber))
}

const subscribe = (listener: () => void) => {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** The connection as a value of the page. */
export const useLive = (): Live => useSyncExternalStore(subscribe, () => state, () => state)
