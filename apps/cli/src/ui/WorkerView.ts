/** What a worker does, from its own counters: a block on a terminal, a line a minute elsewhere when something happened. */
import type { CapReport } from "@purser/core"
import { Clock, Effect, Metric, Ref, type Scope } from "effect"
import { capLines, legend, rateLine, type ShownCounts, shownState, statesBar } from "./ChargeStates.ts"
import { note } from "./Output.ts"
import { clock, figure, line, type Look, perSecond } from "./Panel.ts"
import { makeRates, type Rates } from "./Rates.ts"
import { live } from "./Screen.ts"
import { Tty } from "./Tty.ts"

/** What a view is drawn from. */
export interface WorkerFigures {
  readonly counts: ShownCounts
  readonly settled: number
  readonly inFlight: number
  readonly redelivered: number
  readonly unsettled: number
  readonly stripeCalls: number
  readonly rateLimited: number
}

/** The figures of this process, as a scraper would see them. */
export const workerFigures = Effect.map(Metric.snapshot, (snapshot): WorkerFigures => {
  const sum = (id: string) => snapshot.reduce((total, metric) => metric.id === id && metric.type === "Counter" ? total + Number(metric.state.count) : total, 0)
  const counts: Record<string, number> = {}
  let inFlight = 0
  for (const metric of snapshot) {
    if (metric.id === "purser_charges_in_flight" && metric.type === "Gauge") inFlight = Number(metric.state.value)
    if (metric.id !== "purser_charges_total" || metric.type !== "Counter") continue
    const state = shownState(metric.attributes?.["state"] ?? "")
    counts[state] = (counts[state] ?? 0) + Number(metric.state.count)
  }
  return {
    counts,
    settled: sum("purser_charges_total"),
    inFlight,
    redelivered: sum("purser_redeliveries_total"),
    unsettled: sum("purser_unsettled_total"),
    stripeCalls: sum("purser_stripe_requests_total"),
    rateLimited: sum("purser_stripe_rate_limited_total")
  }
})

/** What a worker's view shows beside its figures. */
export interface WorkerSurroundings {
  readonly title: string
  readonly caps: Effect.Effect<ReadonlyArray<CapReport>>
}

const troubles = ({ rateLimited, redelivered, unsettled }: WorkerFigures) => [
  ...(redelivered === 0 ? [] : [`${figure(redelivered)} redelivered`]),
  ...(unsettled === 0 ? [] : [`${figure(unsettled)} without an outcome`]),
  ...(rateLimited === 0 ? [] : [`${figure(rateLimited)} rate-limited`])
]

/** One line without control sequences. */
export const workerLine = (figures: WorkerFigures, rate: number): string =>
  [`${figures.settled} settled`, perSecond(rate), `${figures.inFlight} in flight`, ...troubles(figures)].join(", ")

/** The block. */
export const workerLines = (
  look: Look,
  view: { readonly title: string; readonly elapsedMs: number; readonly figures: WorkerFigures; readonly charges: Rates; readonly calls: Rates; readonly caps: ReadonlyArray<CapReport>; readonly isInUse?: (cap: CapReport) => boolean }
): ReadonlyArray<string> => {
  const { calls, caps, charges, elapsedMs, figures, isInUse, title } = view
  const told = troubles(figures)
  return [
    line(look, [{ text: title }], [{ text: `up ${clock(elapsedMs)}`, color: "gray" }]),
    statesBar(look, { ...figures.counts, open: figures.inFlight }, figures.settled + figures.inFlight, `${figure(figures.settled)} settled`),
    legend(look, figures.counts),
    rateLine(look, "charges", charges, `${figure(figures.inFlight)} in flight`),
    rateLine(look, "Stripe ", calls, `${figure(figures.stripeCalls)} calls`),
    ...capLines(look, caps, isInUse),
    ...(told.length === 0 ? [] : [line(look, [{ text: told.join(", "), color: "gray" }])])
  ]
}

const plainEveryMs = 60_000

/** Shows a worker until the scope closes. */
export const watchWorker = ({ caps, title }: WorkerSurroundings): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function*() {
    const tty = yield* Tty
    const startedMs = yield* Clock.currentTimeMillis
    const elapsed = Effect.map(Clock.currentTimeMillis, (nowMs) => nowMs - startedMs)
    if (!tty.live) {
      let before = 0
      yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(plainEveryMs), Effect.flatMap(workerFigures, (figures) => {
        const grown = figures.settled - before
        before = figures.settled
        return grown === 0 ? Effect.void : note(workerLine(figures, grown / (plainEveryMs / 1000)))
      }))))
      return
    }
    const charges = makeRates()
    const calls = makeRates()
    const open = yield* Ref.make<ReadonlyArray<CapReport>>([])
    // What each held when it was first seen: whichever holds something else by now is in use.
    const held = new Map<string, bigint>()
    const nameOf = ({ billingPeriod, currency, namespace }: CapReport) => JSON.stringify([namespace, billingPeriod, currency])
    const isInUse = (cap: CapReport) => held.get(nameOf(cap)) !== cap.reservedMinor
    const noteCaps = (all: ReadonlyArray<CapReport>) => {
      for (const cap of all) if (!held.has(nameOf(cap))) held.set(nameOf(cap), cap.reservedMinor)
      return Ref.set(open, all)
    }
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.flatMap(caps, noteCaps), Effect.sleep(5000))))
    yield* live(Effect.gen(function*() {
      const figures = yield* workerFigures
      const elapsedMs = yield* elapsed
      charges.note(elapsedMs, figures.settled)
      calls.note(elapsedMs, figures.stripeCalls)
      return workerLines(tty, { title, elapsedMs, figures, charges, calls, caps: yield* Ref.get(open), isInUse })
    }))
  })
