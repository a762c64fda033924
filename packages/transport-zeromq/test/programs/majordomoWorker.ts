/** A Majordomo worker in a process of its own, to be killed and stopped: `majordomoWorker.ts ENDPOINT HEARTBEAT_MS`. */
import { ChargeServer } from "@purser/core"
import { ZmqTransport } from "@purser/transport-zeromq"
import { Effect } from "effect"
import { paid } from "../support.ts"

const [endpoint, heartbeatMs] = process.argv.slice(2)

await Effect.runPromise(
  Effect.flatMap(ChargeServer, (server) => server.serve((request) => Effect.as(Effect.sleep("5 millis"), paid(request)))).pipe(
    Effect.provide(ZmqTransport.layerMajordomoServer({ endpoint, concurrency: 8, credit: 8, heartbeat: Number(heartbeatMs), socket: { reconnectMs: 20, reconnectMaxMs: 50 } }))
  )
)
