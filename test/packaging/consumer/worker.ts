/** Compiled against the installed declarations, and never run. */
import { NodeRuntime } from "@effect/platform-node"
import { type ChargeOutcome, Transport } from "@purser/core"
import { ChargeWorker } from "@purser/engine"
import { Database, PgLedger, PgSpendCap } from "@purser/postgres"
import { type PurserHandle, Purser } from "@purser/purser"
import { ProxyServer } from "@purser/spend-cap-proxy"
import { StripeGateway } from "@purser/stripe"
import { StripeSim } from "@purser/stripe-sim"
import * as LedgerConformance from "@purser/testkit/LedgerConformance"
import { ZmqTransport } from "@purser/transport-zeromq"
import { Effect } from "effect"

const Wire = Transport.layerFromConfig("PURSER_TRANSPORT", { "req-rep": ZmqTransport.layerReqRep, memory: Transport.layerMemory })

ChargeWorker.launch.pipe(
  Effect.provide([Wire, PgLedger.layer, PgSpendCap.layer, StripeGateway.layerPaymentIntents]),
  Effect.provide(Database.layerConfig),
  NodeRuntime.runMain
)

export const charged: Promise<ChargeOutcome> = Purser.make().then((purser: PurserHandle) =>
  purser.charge({ customerId: "c", billingPeriod: "2026-07", amountMinor: 1, currency: "usd", stripeCustomerId: "cus" }))
export const others = [LedgerConformance, ProxyServer, StripeSim]
// @ts-expect-error an amount is a number
export const wrong = Purser.make().then((purser) => purser.charge({ customerId: "c", billingPeriod: "2026-07", amountMinor: "1", currency: "usd", stripeCustomerId: "cus" }))
