/** Workers: who lives, what each holds, and how fast it is. */
import { WorkerBook, type WorkerLine } from "@purser/core"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ConsoleApi } from "../../api/ConsoleApi.ts"
import type { Worker } from "../../api/Shapes.ts"
import { away } from "../perform.ts"

/** Three beats and a little more. */
const silentAfterMs = 20_000

const lifeOf = ({ beatAtMs, stoppedAtMs }: WorkerLine, atMs: number): Worker["life"] =>
  stoppedAtMs !== null ? "stopped" : beatAtMs === null ? "unknown" : atMs - beatAtMs > silentAfterMs ? "silent" : "beating"

/** The handlers of the group. */
export const layer = HttpApiBuilder.group(ConsoleApi, "workers", Effect.fnUntraced(function*(handlers) {
  const book = yield* WorkerBook
  return handlers.handle("list", () =>
    Effect.mapBoth(book.list, {
      onFailure: away,
      onSuccess: ({ atMs, workers }) => ({ atMs, workers: workers.map((worker) => ({ ...worker, life: lifeOf(worker, atMs) })) })
    }))
}))
