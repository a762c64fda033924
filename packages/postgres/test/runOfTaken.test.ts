/** Who takes a row over learns which run it belongs to, for the log. */
import { assert, layer } from "@effect/vitest"
import { Ledger, RunLedger, RunMark } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { StoreClock } from "@purser/testkit/StoreClock"
import { Effect, Layer } from "effect"
import { PgLedger } from "../src/PgLedger.ts"
import { PgRunLedger } from "../src/PgRunLedger.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { storeClock } from "./support/storeClock.ts"

for (const [name, database] of TestDatabase.layers) {
  layer(Layer.mergeAll(PgLedger.layer, PgRunLedger.layer, storeClock).pipe(Layer.provide(database)), { timeout: 120_000 })(`a row that is taken over on ${name}`, (it) => {
    it.effect("names the latest run that has it, or none", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const book = yield* RunLedger
        const inRun = chargeFor("in-run", "2026-07")
        const alone = chargeFor("alone", "2026-07")
        for (const runId of ["20260701T000000Z-00000001", "20260702T000000Z-00000000"]) {
          yield* book.begin({ runId, source: "a.csv" })
          yield* book.stage(runId, [{ line: 2, chargeKey: inRun.chargeKey, request: inRun }])
          yield* book.plan(runId)
        }
        for (const request of [inRun, alone]) yield* ledger.claim(request, "gone")
        yield* StoreClock.advance(600_000)
        const taken = yield* ledger.takeExpired("sweeper", 10)
        assert.deepStrictEqual(
          new Map(taken.map(({ lease, request }) => [lease.chargeKey, RunMark.of(request)])),
          new Map([[inRun.chargeKey, "20260702T000000Z-00000000"], [alone.chargeKey, undefined]])
        )
      }))
  })
}
