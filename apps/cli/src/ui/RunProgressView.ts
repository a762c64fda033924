/** The progress of a dispatch: one line that is drawn again on a terminal, a plain line now and then elsewhere. */
import type { RunProgress } from "@purser/engine"
import { Clock, Effect, Ref } from "effect"
import { draw, note } from "./Output.ts"
import { Tty } from "./Tty.ts"

const seconds = (value: number): string =>
  value < 60 ? `${Math.ceil(value)}s` : `${Math.floor(value / 60)}m${String(Math.ceil(value % 60)).padStart(2, "0")}s`

/** One line: bar, share, rate, time left, states. */
export const progressLine = (progress: RunProgress, total: number, elapsedMs: number, columns: number): string => {
  const { outcomes } = progress
  const settled = Math.min(total, Object.entries(outcomes).reduce((sum, [tag, rows]) => tag === "error" ? sum : sum + rows, 0))
  const share = total === 0 ? 1 : settled / total
  const rate = elapsedMs < 200 ? 0 : settled / (elapsedMs / 1000)
  const left = rate === 0 ? "–" : seconds((total - settled) / rate)
  const width = Math.max(10, Math.min(30, columns - 60))
  const filled = Math.round(share * width)
  const states = [
    ["paid", outcomes.Succeeded],
    ["declined", outcomes.Declined],
    ["rejected", outcomes.Rejected + outcomes.Canceled],
    ["processing", outcomes.Processing],
    ["action", outcomes.RequiresAction],
    ["retried", outcomes.error]
  ].filter(([, rows]) => rows !== 0).map(([name, rows]) => `${rows} ${name}`).join(", ")
  const text = `${"█".repeat(filled)}${"░".repeat(width - filled)} ${settled}/${total} ${Math.floor(share * 100)}% ${Math.round(rate)}/s ETA ${left}${
    states === "" ? "" : ` · ${states}`
  }`
  return text.slice(0, Math.max(20, columns - 1))
}

/** Shows progress while `effect` runs, and the last state when it ends. */
export const withProgress = <A, E, R>(effect: Effect.Effect<A, E, R>, progress: Ref.Ref<RunProgress>, total: number): Effect.Effect<A, E, R> =>
  Effect.gen(function*() {
    const tty = yield* Tty
    const startedMs = yield* Clock.currentTimeMillis
    const line = Effect.gen(function*() {
      return progressLine(yield* Ref.get(progress), total, (yield* Clock.currentTimeMillis) - startedMs, tty.live ? tty.columns : 120)
    })
    const show = tty.live
      ? Effect.flatMap(line, (text) => draw(`\r\u001b[2K${text}`))
      : Effect.flatMap(line, note)
    const ticker = Effect.forever(Effect.andThen(Effect.sleep(tty.live ? 100 : 5000), show))
    return yield* Effect.scoped(Effect.andThen(Effect.forkScoped(ticker), effect)).pipe(
      Effect.ensuring(tty.live ? Effect.andThen(show, draw("\n")) : show)
    )
  })
