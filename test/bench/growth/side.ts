/**
 * One billing run in a process of its own: `side.ts ROWS RUN DATABASE_URL POST_URL` plans, dispatches and reports so many rows, and says
 * how long each part took and what its memory was meanwhile. A small run before it is for the compiler.
 */
import { AmountMinor, ChargeRequest, RunLedger, type RunRow, Transport } from "@purser/core"
import { BillingRun, ChargePipeline, ChargeWorker, Sweeper } from "@purser/engine"
import { Database, Migrations, PgLedger, PgRunLedger, PgSpendCap } from "@purser/postgres"
import { chargeFor } from "@purser/testkit/chargeFor"
import { Effect, Layer, Redacted, Schema, Stream } from "effect"
import { layerGateway } from "../charge/purser.ts"
import { heard, say } from "../support/side.ts"

const [rowsText, run, databaseUrl, postUrl] = process.argv.slice(2) as [string, string, string, string]
const rows = Number(rowsText)
const inFlight = 256
const pageRows = 1000

/** What the bench reads. */
export interface Grown {
  readonly planMs: number
  readonly dispatchMs: number
  readonly reportMs: number
  readonly cpuMicros: number
  readonly peakRssMb: number
  /** Memory at the end of each quarter of the dispatch. */
  readonly quartersMb: ReadonlyArray<number>
}

const model = chargeFor("model", "2026-07", { allowFuture: false })
const decodeAmount = Schema.decodeSync(AmountMinor)
const rowOf = (name: string, line: number): RunRow => {
  const request = new ChargeRequest({ ...model, customerId: `${run}${name}${line}`, stripeCustomerId: `cus_${line}`, amountMinor: decodeAmount(1000 + line % 9000) })
  return { line, chargeKey: request.chargeKey, request }
}
const chunksOf = (name: string, many: number) =>
  Stream.range(0, Math.ceil(many / pageRows) - 1).pipe(
    // A page is made when it is asked for, as that of a file is read: else all would be made at once.
    Stream.rechunk(1),
    Stream.map((page) => Array.from({ length: Math.min(pageRows, many - page * pageRows) }, (_, index) => rowOf(name, page * pageRows + index + 1)))
  )

const worker = ChargeWorker.layerNoDeps.pipe(Layer.provide(Sweeper.layerNoDeps), Layer.provide(ChargePipeline.layer))
const world = Layer.mergeAll(BillingRun.layer, worker).pipe(
  Layer.provideMerge(Layer.mergeAll(
    Transport.layerMemory, PgLedger.layer, PgSpendCap.layer, PgRunLedger.layer, layerGateway({ databaseUrl, postUrl, inFlight, run })
  )),
  Layer.provideMerge(Migrations.layer),
  Layer.provideMerge(Database.layerUrl(Redacted.make(databaseUrl)))
)

const billed = Effect.fnUntraced(function*(name: string, many: number) {
  const runs = yield* BillingRun
  const book = yield* RunLedger
  const runId = `${run}${name}`
  const memoryMb: Array<number> = []
  const watch = setInterval(() => memoryMb.push(process.memoryUsage.rss() / 1_048_576), 100)
  const cpu = process.cpuUsage()
  const beganMs = performance.now()
  yield* runs.plan({
    runId,
    source: name,
    rows: chunksOf(name, many),
    decide: (check) => Effect.succeed(check.totals.map(({ total }) => ({ scope: total, expected: { expectedMinor: 10n ** 12n, headroomPercent: 110 } })))
  })
  const plannedMs = performance.now()
  const samplesBefore = memoryMb.length
  const summary = yield* runs.dispatch({ runId, concurrency: inFlight })
  const dispatchedMs = performance.now()
  const duringMb = memoryMb.slice(samplesBefore)
  let [line, reported] = [0, 0]
  for (;;) {
    const page = yield* book.report(runId, line, 2000)
    reported += page.length
    if (page.length < 2000) break
    line = page[page.length - 1]!.line
  }
  clearInterval(watch)
  const paid = summary.filter(({ state }) => state === "succeeded").reduce((sum, total) => sum + total.rows, 0)
  if (paid !== many || reported !== many) return yield* Effect.die(new Error(`${paid} of ${many} are paid, ${reported} are in the report`))
  const { system, user } = process.cpuUsage(cpu)
  const grown: Grown = {
    planMs: plannedMs - beganMs,
    dispatchMs: dispatchedMs - plannedMs,
    reportMs: performance.now() - dispatchedMs,
    cpuMicros: (system + user) / many,
    peakRssMb: Math.max(...memoryMb),
    quartersMb: [0.25, 0.5, 0.75, 1].map((share) => duringMb[Math.max(0, Math.ceil(duringMb.length * share) - 1)] ?? Number.NaN)
  }
  return grown
})

await Effect.runPromise(Effect.scoped(Effect.gen(function*() {
  yield* Effect.forkScoped(Effect.flatMap(ChargeWorker, ({ run }) => run))
  yield* billed("w", 5000)
  say("ready")
  yield* Effect.promise(() => heard())
  say(yield* billed("m", rows))
  yield* Effect.promise(() => heard())
})).pipe(Effect.provide(world)))
process.exit(0)
