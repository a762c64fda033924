import { NodeRuntime } from "@effect/platform-node"
import { Transport } from "@purser/core"
import { ChargeWorker } from "@purser/engine"
import { Database, PgLedger, PgSpendCap } from "@purser/postgres"
import { StripeGateway } from "@purser/stripe"
import { ZmqTransport } from "@purser/transport-zeromq"
import { Effect } from "effect"

const Wire = Transport.layerFromConfig("PURSER_TRANSPORT", {
  "req-rep": ZmqTransport.layerReqRep,
  memory: Transport.layerMemory
})

ChargeWorker.launch.pipe(
  Effect.provide([Wire, PgLedger.layer, PgSpendCap.layer, StripeGateway.layerPaymentIntents]),
  Effect.provide(Database.layerConfig), // PURSER_DATABASE_URL, else embedded PGlite in PURSER_DATA_DIR
  NodeRuntime.runMain
)
