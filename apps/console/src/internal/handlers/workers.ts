/** Workers: who lives, what each holds, and how fast it is. */
import { WorkerBook, WorkerLife } from "@purser/core"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ConsoleApi } from "../../api/ConsoleApi.ts"
import { away } from "../perform.ts"

/** The handlers of the group. */
export const layer = HttpApiBuilder.group(ConsoleApi, "workers", Effect.fnUntraced(function*(handlers) {
  const book = yield* WorkerBook
  return handlers.handle("list", () =>
    Effect.mapBoth(book.list, {
      onFailure: away,
      onSuccess: ({ atMs, workers }) => ({ atMs, workers: workers.map((worker) => ({ ...worker, life: WorkerLife.of(worker, atMs) })) })
    }))
}))
