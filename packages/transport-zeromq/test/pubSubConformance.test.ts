/** PUB/SUB over each network and PAIR inside the process pass the suite of every transport. */
import { type Patience, TransportConformance } from "@purser/testkit/TransportConformance"
import { defaultRetry, type PatternClientOptions, ZmqTransport } from "@purser/transport-zeromq"
import { Effect, Schedule } from "effect"
import { networks } from "./support.ts"

const patience: Record<Patience, Pick<PatternClientOptions, "requestTimeout" | "retry">> = {
  patient: { requestTimeout: "60 seconds" },
  hurried: { requestTimeout: "150 millis", retry: Schedule.spaced("10 millis").pipe(Schedule.upTo({ times: 500 })) },
  brief: { requestTimeout: "100 millis", retry: defaultRetry(2) }
}
const common = (endpoint: string) => ({ endpoint, drainTimeout: "30 seconds", socket: { reconnectMs: 10, reconnectMaxMs: 50 } } as const)
const narrow = { window: 50, joinMax: 8 } as const


for (const [network, address] of Object.entries(networks)) {
  TransportConformance.suite(
    `pub-sub over ${network}`,
    Effect.map(address, (endpoint) => ({
      client: (kind: Patience) => ZmqTransport.layerPubSubClient({ ...common(endpoint), ...patience[kind], ...narrow }),
      server: ZmqTransport.layerPubSubServer(common(endpoint))
    })),
    { clock: "live" }
  )
}

TransportConformance.suite(
  "pub-sub whose workers connect to the client",
  Effect.map(networks.tcp, (endpoint) => ({
    client: (kind: Patience) => ZmqTransport.layerPubSubClient({ ...common(`@${endpoint}`), ...patience[kind], ...narrow }),
    server: ZmqTransport.layerPubSubServer(common(`>${endpoint}`))
  })),
  { clock: "live" }
)

TransportConformance.suite(
  "pair",
  Effect.map(networks.inproc, (endpoint) => ({
    client: (kind: Patience) => ZmqTransport.layerPairClient({ ...common(endpoint), ...patience[kind], ...narrow }),
    server: ZmqTransport.layerPairServer(common(endpoint))
  })),
  { clock: "live" }
)
