/** `purser reconcile`: a period in the ledger against the account. */
import { type Currency, Money } from "@purser/core"
import { ChargePipeline, type Difference, type ReconcileOptions, Reconciler, type ReconcileReport } from "@purser/engine"
import { Stores } from "@purser/purser"
import { StripeAccount, StripeGateway } from "@purser/stripe"
import { Effect, Layer } from "effect"
import { CommandFailed, exitStatus } from "../CommandFailed.ts"
import { openLines } from "../ui/LinesFile.ts"
import { note, out } from "../ui/Output.ts"
import { table } from "../ui/table.ts"

/** Differences that are shown; all of them are in the report file. */
const shownMax = 100

const lineOf = (dryRun: boolean) => ({ chargeKey, customerId, detail, kind, objects, repaired }: Difference) => [
  kind, customerId ?? "", objects.map(({ id }) => id).join(" "),
  objects[0] === undefined ? "" : `${Money.formatMinor(BigInt(objects[0].amountMinor), objects[0].currency as Currency)} ${objects[0].currency}`,
  repaired === null ? "remains" : dryRun ? `would be ${repaired}` : repaired, detail, chargeKey
]

const summaryOf = (report: ReconcileReport) =>
  `${report.billingPeriod}: ${report.rows} rows (${report.open} still to be charged), ${report.ours} objects of the period among ${report.listed}`
  + ` at Stripe (${report.foreign} of other programs); ${report.repaired} differences repaired, ${report.remaining} remain`

/** Compares, repairs, reports. */
export const reconcile = (options: ReconcileOptions, output: { readonly report: string | undefined; readonly json: boolean }) =>
  Effect.scoped(Effect.gen(function*() {
    const file = output.report === undefined ? undefined : yield* openLines("report", output.report)
    const shown: Array<Difference> = []
    const { reconcile } = yield* Reconciler
    const report = yield* reconcile(options, (difference) =>
      Effect.gen(function*() {
        if (shown.length < shownMax) shown.push(difference)
        if (file !== undefined) yield* file.write(JSON.stringify(difference))
      }))
    if (file !== undefined) yield* file.finish
    if (output.json) yield* out(JSON.stringify({ ...report, differences: shown }))
    else {
      if (shown.length > 0) yield* out(table(["difference", "customer", "objects", "amount", "repaired", "detail", "charge key"], shown.map(lineOf(options.dryRun)), [3]))
      const total = report.repaired + report.remaining
      if (total > shown.length) yield* note(`${total - shown.length} more; --report FILE writes them all`)
      yield* out(summaryOf(report))
    }
    if (report.remaining > 0) {
      const text = options.dryRun ? `${report.remaining} differences; nothing was changed` : `${report.remaining} differences remain`
      return yield* new CommandFailed({ text, status: exitStatus.partial })
    }
  })).pipe(
    Effect.provide(
      Reconciler.layerNoDeps.pipe(
        Layer.provide(ChargePipeline.layer),
        Layer.provide(Layer.mergeAll(StripeGateway.layerConfig, StripeAccount.layerConfig)),
        Layer.provide(Stores.layerConfig)
      )
    )
  )
