/** `purser sweep`: one sweep by hand. */
import { ChargePipeline, Sweeper } from "@purser/engine"
import { Stores } from "@purser/purser"
import { StripeGateway } from "@purser/stripe"
import { Effect, Layer } from "effect"
import { CommandFailed, exitStatus } from "../CommandFailed.ts"
import { out } from "../ui/Output.ts"
import { watchPauses } from "./pause.ts"

/** Takes up every charge that nobody holds. */
export const sweep = (json: boolean) =>
  Effect.gen(function*() {
    yield* watchPauses
    const report = yield* (yield* Sweeper).sweepOnce
    yield* out(json
      ? JSON.stringify(report)
      : `${report.taken} charges taken up, ${report.settled} settled, ${report.unsettled} still open; room under the cap given back for ${report.released}`)
    if (report.unsettled > 0) {
      return yield* new CommandFailed({ text: `${report.unsettled} charges stay open; they are taken up again later`, status: exitStatus.partial })
    }
  }).pipe(
    Effect.scoped,
    Effect.provide(
      Sweeper.layerNoDeps.pipe(
        Layer.provide(ChargePipeline.layer),
        Layer.provide(StripeGateway.layerConfig),
        Layer.provideMerge(Stores.layerConfig)
      )
    )
  )
