import { NodeRuntime } from "@effect/platform-node"
import { Transport } from "@purser/core"
import { ChargeWorker } from "@purser/engine"
import { Database, PgLedger, PgSpendCap } from "@purser/postgres"
import { StripeGateway } from "@purser/stripe"
import { ZmqTransport } from "@purser/transport-zeromq"
import { Layer } from "effect"

const Wire = Transport.layerFromConfig("PURSER_TRANSPORT", {
  "req-rep": ZmqTransport.layerReqRep,
  memory: Transport.layerMemory
})

ChargeWorker.layer.pipe(
  Layer.provide([Wire, PgLedger.layer, PgSpendCap.layer, StripeGateway.layerPaymentIntents]),
  Layer.provide(Database.layerConfig), // PURSER_DATABASE_URL, else embedded PGlite in PURSER_DATA_DIR
  Layer.launch,
  NodeRuntime.runMain
)
