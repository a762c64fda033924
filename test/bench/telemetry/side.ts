/**
 * One process of the comparison: charges over router-dealer sockets through the engine, with stores in memory, and prints the
 * processor time of one charge in microseconds, in the quickest of eight parts of them: other work on the machine only ever adds. It uses what earlier revisions have too, so that it can run in their checkouts.
 */
import { ChargeClient, ChargeServer, Ledger, SpendCap } from "@purser/core"
import { ChargePipeline, PipelineOptions } from "@purser/engine"
import { chargeFor } from "@purser/testkit/chargeFor"
import { MockGateway } from "@purser/testkit/MockGateway"
import { ZmqTransport } from "@purser/transport-zeromq"
import { Context, Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { OtlpExporter, OtlpSerialization, OtlpTracer } from "effect/observability"

const parts = 8
const [mode = "off", count = "20000", inFlight = "256", collector = ""] = process.argv.slice(2)

const traces = OtlpTracer.layer({ url: `${collector}/v1/traces`, resource: { serviceName: "bench" } }).pipe(
  Layer.provide([OtlpExporter.layerFlusher, FetchHttpClient.layer, OtlpSerialization.layerProtobuf])
)
// By its address: earlier revisions have no such setting, and take no notice of it.
const measures = Layer.succeedContext(Context.make(Context.Reference<boolean>("@purser/core/Measures", { defaultValue: () => false }), true))
const modes: Readonly<Record<string, Layer.Layer<never>>> = {
  off: Layer.empty,
  metrics: measures,
  traces,
  both: Layer.mergeAll(measures, traces)
}

const world = ChargePipeline.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(Ledger.layerMemory, SpendCap.layerMemory, MockGateway.layer, ZmqTransport.layerRouterDealerLoopback())),
  Layer.provide(PipelineOptions.layer({ worker: "bench" }))
)

const program = Effect.gen(function*() {
  const client = yield* ChargeClient
  const server = yield* ChargeServer
  const { charge } = yield* ChargePipeline
  const first = chargeFor("cap", "2026-07")
  yield* (yield* SpendCap).open({ ...first, expectedMinor: 10n ** 12n, headroomPercent: 110 })
  yield* Effect.forkScoped(server.serve(charge))
  const round = (name: string, charges: number) =>
    Effect.forEach(Array.from({ length: charges }, (_, index) => chargeFor(`${name}${index}`, "2026-07")), client.submit, { concurrency: Number(inFlight), discard: true })
  // Twice: what is compiled late is compiled then. A charge takes twice as long after three thousand as after nine thousand.
  yield* round("warm", Math.ceil(Number(count) * 3 / 4))
  yield* round("warmer", Math.ceil(Number(count) * 3 / 4))
  const part = Math.ceil(Number(count) / parts)
  const micros: Array<number> = []
  for (let at = 0; at < parts; at++) {
    const before = process.cpuUsage()
    yield* round(`c${at}n`, part)
    const { system, user } = process.cpuUsage(before)
    micros.push((system + user) / part)
  }
  console.log(Math.min(...micros).toFixed(2))
})

await Effect.runPromise(Effect.scoped(program).pipe(Effect.provide(Layer.provideMerge(world, modes[mode] ?? Layer.empty))))
process.exit(0)
