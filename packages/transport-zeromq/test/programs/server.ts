/** A worker in a process of its own, to be killed, frozen or told to stop: `server.ts PATTERN ENDPOINT`. It pays whatever it is asked. */
import { NodeRuntime } from "@effect/platform-node"
import { ChargeServer } from "@purser/core"
import { ZmqTransport } from "@purser/transport-zeromq"
import { Cause, Effect, Exit } from "effect"
import { paid } from "../support.ts"

const [pattern, endpoint] = process.argv.slice(2)
const layer = pattern === "push-pull" ? ZmqTransport.layerPushPullServer : pattern === "req-rep" ? ZmqTransport.layerReqRepServer : ZmqTransport.layerRouterDealerServer

Effect.flatMap(ChargeServer, (server) => server.serve((request) => Effect.as(Effect.sleep("5 millis"), paid(request)))).pipe(
  Effect.provide(layer({ endpoint, concurrency: 8 })),
  // Being told to stop is no failure when everything was answered.
  (serving) => NodeRuntime.runMain(serving, { teardown: (exit, onExit) => onExit(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? 0 : 1) })
)
