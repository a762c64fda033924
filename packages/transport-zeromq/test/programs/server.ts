/** A worker in a process of its own, to be killed: `server.ts PATTERN ENDPOINT`. It pays whatever it is asked. */
import { ChargeServer } from "@purser/core"
import { ZmqTransport } from "@purser/transport-zeromq"
import { Effect } from "effect"
import { paid } from "../support.ts"

const [pattern, endpoint] = process.argv.slice(2)
const layer = pattern === "push-pull" ? ZmqTransport.layerPushPullServer : ZmqTransport.layerRouterDealerServer

await Effect.runPromise(
  Effect.flatMap(ChargeServer, (server) => server.serve((request) => Effect.as(Effect.sleep("5 millis"), paid(request)))).pipe(
    Effect.provide(layer({ endpoint, concurrency: 8 }))
  )
)
