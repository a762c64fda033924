/** The progress of a dispatch: a block that is drawn again on a terminal, a plain line now and then elsewhere. */
import { type CapReport, RunPace } from "@purser/core"
import type { RunProgress } from "@purser/engine"
import { Clock, Effect, Ref } from "effect"
import { capLine, legend, rateLine, type ShownCounts, statesBar } from "./ChargeStates.ts"
import { note } from "./Output.ts"
import { clock, figure, line, type Look, perSecond } from "./Panel.ts"
import { makeRates, type Rates } from "./Rates.ts"
import { live } from "./Screen.ts"
import { Tty } from "./Tty.ts"

/** What a view of a run shows beside its progress. */
export interface RunSurroundings {
  /** What it is called: its run, its file. */
  readonly title: string
  /** The caps that it works under; looked at now and then. */
  readonly caps: Effect.Effect<ReadonlyArray<CapReport>>
  /** Why nothing more is sent, while that is so. */
  readonly held: Effect.Effect<string | undefined>
}

const countsOf = ({ outcomes }: RunProgress, total: number) => {
  const settled = Math.min(total, Object.entries(outcomes).reduce((sum, [tag, rows]) => tag === "error" ? sum : sum + rows, 0))
  const counts: ShownCounts = {
    paid: outcomes.Succeeded,
    processing: outcomes.Processing,
    action: outcomes.RequiresAction,
    declined: outcomes.Declined,
    rejected: outcomes.Rejected + outcomes.Canceled,
    open: total - settled
  }
  return { settled, counts }
}

/** How long it takes at this rate. */
const timeLeft = (rows: number, rate: number): string => {
  const leftMs = RunPace.leftMs(rows, rate)
  return leftMs === null ? "–" : clock(Math.ceil(leftMs / 1000) * 1000)
}

/** One line without control sequences: share, rate, time left, states. What is held has no time left that anybody knew. */
export const progressLine = (progress: RunProgress, total: number, rate: number, held?: string): string => {
  const { counts, settled } = countsOf(progress, total)
  const states = [
    ["paid", counts.paid], ["declined", counts.declined], ["rejected", counts.rejected], ["processing", counts.processing],
    ["action", counts.action], ["retried", progress.outcomes.error]
  ].filter(([, rows]) => rows !== 0).map(([name, rows]) => `${rows} ${name}`).join(", ")
  const going = held ?? `${perSecond(rate)} ETA ${timeLeft(total - settled, rate)}`
  return `${settled}/${total} ${Math.floor(total === 0 ? 100 : settled / total * 100)}% ${going}${states === "" ? "" : ` · ${states}`}`
}

/** What a live view is drawn from. */
export interface RunView {
  readonly title: string
  readonly progress: RunProgress
  readonly total: number
  readonly elapsedMs: number
  readonly rates: Rates
  readonly caps: ReadonlyArray<CapReport>
  readonly held?: string | undefined
}

const capsShown = 4

/** The block. */
export const runLines = (look: Look, { caps, elapsedMs, held, progress, rates, title, total }: RunView): ReadonlyArray<string> => {
  const { counts, settled } = countsOf(progress, total)
  const share = total === 0 ? 100 : Math.floor(settled / total * 100)
  const mean = elapsedMs < 200 ? 0 : settled / (elapsedMs / 1000)
  const left = settled >= total ? "done" : held !== undefined ? "ETA –" : `ETA ${timeLeft(total - settled, rates.now())}`
  return [
    line(look, [{ text: title }], [{ text: clock(elapsedMs), color: "gray" }]),
    statesBar(look, counts, total, `${figure(settled)}/${figure(total)} ${share}%`),
    legend(look, counts, progress.outcomes.error === 0 ? [] : [`${figure(progress.outcomes.error)} retried`]),
    rateLine(look, "rate", rates, `mean ${perSecond(mean)}  ${left}`),
    ...(held === undefined ? [] : [line(look, [{ text: held, color: "red" }])]),
    ...caps.slice(0, capsShown).map((cap) => capLine(look, cap)),
    ...(caps.length > capsShown ? [line(look, [{ text: `… and ${caps.length - capsShown} more caps`, color: "gray" }])] : []),
    ...(progress.lastError === undefined ? [] : [line(look, [{ text: `last error: ${progress.lastError}`, color: "gray" }])])
  ]
}

const plainEveryMs = 5000

/** Shows progress while `effect` runs, and the last state when it ends. */
export const withProgress = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  progress: Ref.Ref<RunProgress>,
  total: number,
  surroundings: RunSurroundings = { title: "charging", caps: Effect.succeed([]), held: Effect.undefined }
): Effect.Effect<A, E, R> =>
  Effect.scoped(Effect.gen(function*() {
    const tty = yield* Tty
    const startedMs = yield* Clock.currentTimeMillis
    const elapsed = Effect.map(Clock.currentTimeMillis, (nowMs) => nowMs - startedMs)
    // A run that takes a second says its rate as well, where it is said in lines.
    const rates = makeRates(tty.live ? 1000 : 200)
    rates.note(0, countsOf(yield* Ref.get(progress), total).settled)
    const look = Effect.gen(function*() {
      const [now, elapsedMs, held] = [yield* Ref.get(progress), yield* elapsed, yield* surroundings.held]
      rates.note(elapsedMs, countsOf(now, total).settled, held !== undefined)
      return { progress: now, elapsedMs, held }
    })
    if (!tty.live) {
      const show = Effect.flatMap(look, ({ held, progress }) => note(progressLine(progress, total, rates.now(), held)))
      yield* Effect.addFinalizer(() => show)
      yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(plainEveryMs), show)))
      return yield* effect
    }
    const caps = yield* Ref.make<ReadonlyArray<CapReport>>([])
    const lookAtCaps = Effect.flatMap(surroundings.caps, (all) => Ref.set(caps, all))
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(lookAtCaps, Effect.sleep(2000))))
    yield* live(Effect.gen(function*() {
      return runLines(tty, { ...yield* look, title: surroundings.title, total, rates, caps: yield* Ref.get(caps) })
    }))
    // The last look, which stays, has the caps as they are then.
    yield* Effect.addFinalizer(() => lookAtCaps)
    return yield* effect
  }))
