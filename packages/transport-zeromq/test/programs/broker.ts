/** A broker in a process of its own, to be killed and stopped: `broker.ts ENDPOINT [HEARTBEAT_MS]`. */
import { Broker } from "@purser/transport-zeromq"
import { Effect } from "effect"

const [endpoint, heartbeatMs = "500"] = process.argv.slice(2)

await Effect.runPromise(Effect.scoped(Effect.andThen(Broker.open({ endpoint, heartbeat: Number(heartbeatMs), drainTimeout: 0 }), Effect.never)))
