/** `purser prune`: what may be forgotten by age. */
import { PgRetention, type RetentionAges } from "@purser/postgres"
import { Stores } from "@purser/purser"
import { Effect, Layer } from "effect"
import { out } from "../ui/Output.ts"
import { table } from "../ui/table.ts"

/** Counts, and deletes when it is told to. */
export const prune = (ages: RetentionAges, options: { readonly apply: boolean; readonly json: boolean }) =>
  Effect.gen(function*() {
    const retention = yield* PgRetention
    const report = yield* options.apply ? retention.prune(ages) : retention.count(ages)
    if (options.json) return yield* out(JSON.stringify({ ...report, applied: options.apply }))
    yield* out(table(["what", "count"], [
      ["workflow executions", String(report.executions)],
      ["rows of the workflow engine", String(report.engineRows)],
      ["runs", String(report.runs)],
      ["rows of runs", String(report.runRows)],
      ["dunning cases", String(report.dunningCases)],
      ["webhook events", String(report.webhookEvents)]
    ], [1]))
    yield* out(options.apply ? "\ndeleted" : "\nnothing was deleted; --apply deletes them")
  }).pipe(Effect.provide(PgRetention.layer.pipe(Layer.provide(Stores.layerConfig))))
