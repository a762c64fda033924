import { type Patience, TransportConformance } from "@purser/testkit/TransportConformance"
import { Broker, defaultRetry, type PatternClientOptions, ZmqTransport } from "@purser/transport-zeromq"
import { Effect, Schedule } from "effect"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { networks } from "./support.ts"

const patience: Record<Patience, PatternClientOptions> = {
  patient: { requestTimeout: "60 seconds" },
  hurried: { requestTimeout: "150 millis", retry: Schedule.spaced("10 millis").pipe(Schedule.upTo({ times: 500 })) },
  brief: { requestTimeout: "100 millis", retry: defaultRetry(2) }
}

/** The settings of all three sides. */
const common = (endpoint: string) => ({ endpoint, heartbeat: "500 millis", drainTimeout: "30 seconds", socket: { reconnectMs: 10, reconnectMaxMs: 50 } } as const)


const sides = (endpoint: string) => ({
  client: (kind: Patience) => ZmqTransport.layerMajordomoClient({ ...common(endpoint), ...patience[kind], window: 50, joinMax: 8 }),
  server: ZmqTransport.layerMajordomoServer({ ...common(endpoint), credit: 4 })
})

for (const [network, address] of Object.entries(networks)) {
  TransportConformance.suite(
    `majordomo over ${network}`,
    Effect.gen(function*() {
      const endpoint = yield* address
      yield* Broker.open(common(endpoint))
      return sides(endpoint)
    }),
    { clock: "live" }
  )
}

const program = fileURLToPath(new URL("programs/broker.ts", import.meta.url))

TransportConformance.suite(
  "majordomo, the broker in a process of its own",
  Effect.gen(function*() {
    const endpoint = yield* networks.tcp
    yield* Effect.acquireRelease(
      Effect.sync(() => spawn(process.execPath, [program, endpoint], { stdio: "ignore" })),
      (child) => Effect.sync(() => void child.kill("SIGKILL"))
    )
    return sides(endpoint)
  }),
  { clock: "live" }
)
