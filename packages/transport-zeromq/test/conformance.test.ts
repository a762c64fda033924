import type { ChargeClient, ChargeServer } from "@purser/core"
import { type Patience, TransportConformance } from "@purser/testkit/TransportConformance"
import { defaultRetry, type PatternClientOptions, ZmqTransport } from "@purser/transport-zeromq"
import { Effect, type Layer, Schedule } from "effect"
import { networks } from "./support.ts"

const patience: Record<Patience, PatternClientOptions> = {
  patient: { requestTimeout: "60 seconds" },
  hurried: { requestTimeout: "150 millis", retry: Schedule.spaced("10 millis").pipe(Schedule.upTo({ times: 500 })) },
  brief: { requestTimeout: "100 millis", retry: defaultRetry(2) }
}

/** The settings of both sides, and a client's own. */
const common = (endpoint: string) => ({ endpoint, drainTimeout: "30 seconds", socket: { reconnectMs: 10, reconnectMaxMs: 50 } } as const)

// Narrow limits for hundreds of requests: every test goes through waiting, joining and recycled sockets.
const patterns = {
  "req-rep": {
    client: (endpoint: string, own: PatternClientOptions): Layer.Layer<ChargeClient, unknown> => ZmqTransport.layerReqRepClient({ ...common(endpoint), ...own, sockets: 2 }),
    server: (endpoint: string): Layer.Layer<ChargeServer, unknown> => ZmqTransport.layerReqRepServer(common(endpoint))
  },
  "router-dealer": {
    client: (endpoint: string, own: PatternClientOptions): Layer.Layer<ChargeClient, unknown> => ZmqTransport.layerRouterDealerClient({ ...common(endpoint), ...own, window: 50, joinMax: 8 }),
    server: (endpoint: string): Layer.Layer<ChargeServer, unknown> => ZmqTransport.layerRouterDealerServer(common(endpoint))
  },
  "push-pull": {
    client: (endpoint: string, own: PatternClientOptions): Layer.Layer<ChargeClient, unknown> => ZmqTransport.layerPushPullClient({ ...common(endpoint), ...own, window: 50, joinMax: 8 }),
    server: (endpoint: string): Layer.Layer<ChargeServer, unknown> => ZmqTransport.layerPushPullServer(common(endpoint))
  }
}


for (const [name, { client, server }] of Object.entries(patterns)) {
  for (const [network, address] of Object.entries(networks)) {
    TransportConformance.suite(
      `${name} over ${network}`,
      Effect.map(address, (endpoint) => ({ client: (kind: Patience) => client(endpoint, patience[kind]), server: server(endpoint) })),
      { clock: "live" }
    )
  }
}
