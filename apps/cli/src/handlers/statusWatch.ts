/** `purser status --watch`: how all charges stand, until stopped. */
import { type BillingPeriod, ChargePause, Ledger, SpendCap } from "@purser/core"
import { Database } from "@purser/postgres"
import { Stores } from "@purser/purser"
import { Clock, DateTime, Duration, Effect, Ref } from "effect"
import { serving } from "../launch.ts"
import { out } from "../ui/Output.ts"
import { makeRates } from "../ui/Rates.ts"
import { live } from "../ui/Screen.ts"
import { groupsOf, settledOf, statusLines, type StatusLook, statusText } from "../ui/StatusView.ts"
import { Tty } from "../ui/Tty.ts"
import { capRows } from "./cap.ts"

/** A look that takes long is not taken all the time: the ledger has charges to make. */
const restFactor = 4

/** Looks again and again; on a terminal the view is drawn anew, elsewhere each look is a line of output, or a JSON object. */
export const watchStatus = (options: { readonly period: BillingPeriod | undefined; readonly interval: Duration.Duration; readonly json: boolean }) =>
  Effect.gen(function*() {
    const tty = yield* Tty
    const ledger = yield* Ledger
    const cap = yield* SpendCap
    const pause = yield* ChargePause
    const { label } = yield* Database
    const look = Effect.map(
      Effect.all([ledger.report(options.period), cap.report(options.period), pause.inForce]),
      ([totals, caps, pauses]): StatusLook => ({ totals, caps, pauses })
    )
    // Before anything is drawn: a store that is not there is a failure, and not an empty view.
    const first = yield* look
    const seen = yield* Ref.make<StatusLook>(first)
    const everyMs = Duration.toMillis(options.interval)
    const rates = makeRates(Math.min(1000, everyMs))
    const noteRate = (now: StatusLook) => Effect.map(Clock.currentTimeMillis, (nowMs) => rates.note(nowMs, settledOf(groupsOf(now.totals))))
    const time = Effect.map(DateTime.now, (now) => `${DateTime.formatIso(now).slice(0, 19)}Z`)
    const again = Effect.gen(function*() {
      const startedMs = yield* Clock.currentTimeMillis
      const result = yield* Effect.result(look)
      if (result._tag === "Success") yield* Effect.andThen(Ref.set(seen, result.success), noteRate(result.success))
      else yield* Effect.logWarning(`the store did not answer, the view is the last one: ${result.failure.message}`)
      yield* Effect.sleep(Math.max(everyMs, restFactor * ((yield* Clock.currentTimeMillis) - startedMs)))
    })
    yield* noteRate(first)

    if (tty.output && !options.json) {
      const title = `purser status${options.period === undefined ? "" : ` ${options.period}`}  ledger ${label}`
      yield* live(Effect.gen(function*() {
        return statusLines(tty, { ...yield* Ref.get(seen), title, now: yield* time, rates })
      }))
      return yield* serving(Effect.forever(again))
    }
    const print = Effect.gen(function*() {
      const now = yield* Ref.get(seen)
      const at = yield* time
      if (!options.json) return yield* Effect.forEach(statusText(at, now, rates.now()), out, { discard: true })
      const charges = now.totals.map((total) => ({ ...total, amountMinor: Number(total.amountMinor), receivedMinor: Number(total.receivedMinor) }))
      yield* out(JSON.stringify({ at, perSecond: rates.now(), charges, caps: capRows(now.caps), pauses: now.pauses }))
    })
    return yield* serving(Effect.forever(Effect.andThen(print, again)))
  }).pipe(Effect.scoped, Effect.provide(Stores.layerConfig))
