// #region
import { ChargeClient, ChargeServer, Succeeded, Transport } from "@purser/core"
import { ZmqTransport } from "@purser/transport-zeromq"
import { chargeFor } from "@purser/testkit"
import { Console, Effect } from "effect"

// Neither side names a transport. A handler stands in for the engine; `ChargeWorker` is one.
const program = Effect.gen(function*() {
  const { serve } = yield* ChargeServer
  yield* Effect.forkScoped(serve(({ amountMinor, chargeKey }) =>
    Effect.succeed(new Succeeded({ chargeKey, alreadySettled: false, paymentIntentId: "pi_1", chargeId: "ch_1", amountReceivedMinor: amountMinor }))))
  return (yield* (yield* ChargeClient).submit(chargeFor("cust_123", "2026-Q3")))._tag
}).pipe(Effect.scoped)

const transports = {
  "memory": Transport.layerMemory,
  "req-rep": ZmqTransport.layerReqRepLoopback(),
  "router-dealer": ZmqTransport.layerRouterDealerLoopback(),
  "push-pull": ZmqTransport.layerPushPullLoopback(),
  "pair": ZmqTransport.layerPair()
}
for (const [name, layer] of Object.entries(transports)) {
  await Effect.runPromise(Effect.flatMap(Effect.provide(program, layer), (outcome) => Console.log(name, outcome)))
}
// #endregion
