/** `purser sweep`: one sweep by hand. */
import { ChargePipeline, Refunds, Sweeper } from "@purser/engine"
import { Stores } from "@purser/purser"
import { StripeGateway, StripeRefunds } from "@purser/stripe"
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
    const { refunds } = report
    if (!json && refunds !== undefined && refunds.taken > 0) {
      yield* out(`${refunds.taken} refunds taken up, ${refunds.settled} settled, ${refunds.unsettled} still open`)
    }
    const open = [
      ...(report.unsettled > 0 ? [`${report.unsettled} charges`] : []),
      ...(refunds !== undefined && refunds.unsettled > 0 ? [`${refunds.unsettled} refunds`] : [])
    ]
    if (open.length > 0) {
      return yield* new CommandFailed({ text: `${open.join(" and ")} stay open; they are taken up again later`, status: exitStatus.partial })
    }
  }).pipe(
    Effect.scoped,
    Effect.provide(
      Sweeper.layerNoDeps.pipe(
        Layer.provide(Layer.mergeAll(ChargePipeline.layer, Refunds.layer)),
        Layer.provide(Layer.mergeAll(StripeGateway.layerConfig, StripeRefunds.layer)),
        Layer.provideMerge(Stores.layerConfig)
      )
    )
  )
