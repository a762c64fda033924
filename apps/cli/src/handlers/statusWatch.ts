/** `purser status --watch`: how all charges stand, until stopped. */
import { answeredWithin, type BillingPeriod, ChargePause, Ledger, SpendCap } from "@purser/core"
import { Database } from "@purser/postgres"
import { Stores } from "@purser/purser"
import { Clock, Duration, Effect, Ref } from "effect"
import { refused } from "../CommandFailed.ts"
import { serving } from "../launch.ts"
import { out } from "../ui/Output.ts"
import { makeRates } from "../ui/Rates.ts"
import { live } from "../ui/Screen.ts"
import { groupsOf, seenAfter, settledOf, statusLines, type StatusLook, type StatusSeen, statusText } from "../ui/StatusView.ts"
import { Tty } from "../ui/Tty.ts"
import { statusJson } from "./statusJson.ts"

/** A look that takes long is not taken all the time: the ledger has charges to make. */
const restFactor = 4

/** A ledger that has not answered by then is away: a dead connection would else be waited for as long as the network likes. */
const lookMax = Duration.seconds(10)

/** What is watched, and how. */
export interface WatchOptions {
  readonly period: BillingPeriod | undefined
  readonly interval: Duration.Duration
  readonly json: boolean
}

/** Looks again and again; on a terminal the view is drawn anew, elsewhere each look is printed as it ends: as a line, or a JSON object. */
export const watching = (options: WatchOptions, print: (text: string) => Effect.Effect<void>) =>
  Effect.gen(function*() {
    const tty = yield* Tty
    const ledger = yield* Ledger
    const cap = yield* SpendCap
    const pause = yield* ChargePause
    const { label } = yield* Database
    const look = answeredWithin(
      Effect.map(
        Effect.all([ledger.report(options.period), cap.report(options.period), pause.inForce]),
        ([totals, caps, pauses]): StatusLook => ({ totals, caps, pauses })
      ),
      lookMax
    )
    // Before anything is drawn: a store that is not there is a failure, and not an empty view.
    const first = yield* look
    if (first === undefined) return yield* refused(`the ledger is away: it has not answered within ${Duration.format(lookMax)}`)
    const seen = yield* Ref.make<StatusSeen>({ look: first, atMs: yield* Clock.currentTimeMillis, awaySinceMs: undefined })
    const everyMs = Duration.toMillis(options.interval)
    const rates = makeRates(Math.min(1000, everyMs))
    const noteRate = (now: StatusLook) => Effect.map(Clock.currentTimeMillis, (nowMs) => rates.note(nowMs, settledOf(groupsOf(now.totals))))
    const rest = (tookMs: number) => Effect.sleep(Math.max(everyMs, restFactor * tookMs))
    const told = Effect.gen(function*() {
      if (tty.output && !options.json) return
      const now = yield* Ref.get(seen)
      if (options.json) return yield* print(statusJson(now, rates.now()))
      yield* Effect.forEach(statusText(yield* Clock.currentTimeMillis, now, rates.now()), print, { discard: true })
    })
    const again = Effect.gen(function*() {
      const startedMs = yield* Clock.currentTimeMillis
      const result = yield* Effect.result(look)
      const endedMs = yield* Clock.currentTimeMillis
      const found = result._tag === "Success" ? result.success : undefined
      yield* Ref.update(seen, (before) => seenAfter(before, found, found === undefined ? startedMs : endedMs))
      if (found !== undefined) yield* noteRate(found)
      else yield* Effect.logWarning(`the store did not answer, the view is the last one: ${result._tag === "Failure" ? result.failure.message : "the look took too long"}`)
      yield* told
      // A look without an answer gave the ledger nothing to do, and an outage's end is not to be told late.
      yield* rest(found === undefined ? 0 : endedMs - startedMs)
    })
    yield* noteRate(first)

    if (tty.output && !options.json) {
      const title = `purser status${options.period === undefined ? "" : ` ${options.period}`}  ledger ${label}`
      yield* live(Effect.gen(function*() {
        return statusLines(tty, { seen: yield* Ref.get(seen), title, nowMs: yield* Clock.currentTimeMillis, rates })
      }))
    }
    return yield* serving(told.pipe(Effect.andThen(rest(0)), Effect.andThen(Effect.forever(again))))
  }).pipe(Effect.scoped)

/** The same on the configured stores. */
export const watchStatus = (options: WatchOptions) => Effect.provide(watching(options, out), Stores.layerConfig)
