/** What the state of a run does not tell: that nobody is there who works on it. */
import { isRunOver, type RunRecord, RunRegistry, WorkerBook, WorkerLife } from "@purser/core"
import { foregroundDefinition } from "@purser/engine"
import { Database } from "@purser/postgres"
import { DateTime, Effect } from "effect"
import { note } from "../ui/Output.ts"

/** Asks the workers' book, and answers by it of any run. */
export const abandonedBy = Effect.map(Effect.flatMap(WorkerBook, ({ list }) => list), (book) => (run: RunRecord) => WorkerLife.abandoned(run, book))

/** Of a command that is not heard of any more. */
export const lostText = ({ lostSinceMs }: RunRecord): string | undefined =>
  lostSinceMs === null ? undefined : `its command was last heard of at ${DateTime.formatIso(DateTime.makeUnsafe(lostSinceMs)).slice(0, 19).replace("T", " ")}; the same command goes on with its rows`

/** Says of a run that was just handed over, or acted on, that no runner is there for it. */
export const noteUnattended = Effect.fnUntraced(function*(run: RunRecord) {
  if (isRunOver(run.state) || run.definition === foregroundDefinition) return
  // Beside this process there can be none.
  if ((yield* Database).kind === "pglite") return yield* note("The embedded database serves one process: start `purser runner` for the run to go on.")
  const text = (yield* abandonedBy)(run)
  if (text !== null) yield* note(`run ${run.name}: ${text}`)
})

const lookEvery = "5 seconds"

/** Says when no runner is there any more for a run that is followed, and when one is again, until interrupted. */
export const watchUnattended = Effect.fnUntraced(function*(name: string) {
  const registry = yield* RunRegistry
  let told: string | null = null
  const look = Effect.gen(function*() {
    const run = yield* registry.find(name)
    if (run === undefined || isRunOver(run.state)) return
    const text = (yield* abandonedBy)(run)
    if (text === told) return
    told = text
    yield* note(`${run.name}: ${text ?? "a runner answers"}`)
  })
  // A store that is away is told of by whoever follows the run.
  return yield* Effect.forever(Effect.andThen(Effect.ignore(look), Effect.sleep(lookEvery)))
})
