import { type Patience, TransportConformance } from "@purser/testkit/TransportConformance"
import { defaultRetry, type ReqRepLayerOptions, ZmqTransport } from "@purser/transport-zeromq"
import { Effect, FileSystem, Schedule } from "effect"
import { NodeServices } from "@effect/platform-node"
import { randomUUID } from "node:crypto"
import { freePort } from "./support.ts"

const patience: Record<Patience, ReqRepLayerOptions> = {
  patient: { requestTimeout: "60 seconds" },
  hurried: { requestTimeout: "150 millis", retry: Schedule.spaced("10 millis").pipe(Schedule.upTo({ times: 500 })) },
  brief: { requestTimeout: "100 millis", retry: defaultRetry(2) }
}

const reqRep = (endpoint: string) => {
  // Two sockets for hundreds of requests: every test goes through waiting, joining and recycled sockets.
  const common = { endpoint, sockets: 2, drainTimeout: "30 seconds", socket: { reconnectMs: 10, reconnectMaxMs: 50 } } as const
  return {
    client: (kind: Patience) => ZmqTransport.layerReqRepClient({ ...common, ...patience[kind] }),
    server: ZmqTransport.layerReqRepServer(common)
  }
}

TransportConformance.suite("req-rep over inproc", Effect.sync(() => reqRep(`inproc://${randomUUID()}`)), { clock: "live" })

TransportConformance.suite(
  "req-rep over ipc",
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    return reqRep(`ipc://${yield* fs.makeTempDirectoryScoped({ prefix: "purser-" })}/charge.sock`)
  }).pipe(Effect.provide(NodeServices.layer)),
  { clock: "live" }
)

TransportConformance.suite("req-rep over tcp", Effect.map(freePort, (port) => reqRep(`tcp://127.0.0.1:${port}`)), { clock: "live" })
