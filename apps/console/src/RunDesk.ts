/**
 * The acts on one run: it is held, goes on, or is given up by whoever runs it. The way to the runners is opened for an act and
 * closed soon after; a command that has a run in hand reads the register by itself.
 */
import type { RunLedger, RunRecord, RunRegistry } from "@purser/core"
import { Runs, type RunError } from "@purser/engine"
import type { DatabaseServices } from "@purser/postgres"
import { Runner } from "@purser/purser"
import { Context, Duration, Effect, Layer, RcRef } from "effect"
import { ActRefused, Away, NotThere } from "./api/ConsoleError.ts"

/** What may be done with a run. */
export type RunDeed = "pause" | "resume" | "cancel"

/** Why an act on a run was not done. */
export type RunDeskError = ActRefused | Away | NotThere

const idle = Duration.seconds(30)
const away = (error: unknown) => new Away({ message: error instanceof Error ? error.message : "the way to the runners is not open" })

const refusalOf = (error: RunError | { readonly _tag: "LedgerError"; readonly message: string }): RunDeskError => {
  if (error._tag === "LedgerError") return away(error)
  return error.reason._tag === "UnknownRun" ? new NotThere({ message: error.message }) : new ActRefused({ message: error.message })
}

/** The desk. */
export class RunDesk extends Context.Service<RunDesk, {
  /** Does it, and answers the run as it stands then. */
  readonly act: (deed: RunDeed, run: string, actor: string, reason: string) => Effect.Effect<RunRecord, RunDeskError>
}>()("@purser/console/RunDesk") {
  /** Over the configured engine on the ledger's database. */
  static readonly layer: Layer.Layer<RunDesk, never, DatabaseServices | RunRegistry | RunLedger> = Layer.effect(
    RunDesk,
    Effect.gen(function*() {
      const context = yield* Effect.context<DatabaseServices | RunRegistry | RunLedger>()
      const runs = Runs.layer.pipe(Layer.provide(Runner.layerClient), Layer.provide(Layer.succeedContext(context)))
      const ref = yield* RcRef.make({ acquire: Layer.build(Layer.fresh(runs)), idleTimeToLive: idle })
      return RunDesk.of({
        act: Effect.fn("RunDesk.act")(function*(deed, run, actor, reason) {
          const services = yield* Effect.mapError(RcRef.get(ref), away)
          const { cancel, pause, resume } = Context.get(services, Runs)
          const done = deed === "resume" ? resume(run, actor) : deed === "pause" ? pause(run, actor, reason) : cancel(run, actor, reason)
          return yield* Effect.mapError(done, refusalOf)
        }, Effect.scoped)
      })
    })
  )
}
