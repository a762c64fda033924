/**
 * A console composed from the configuration: the ledger's database, the key to Stripe where there is one, the proxy's store where
 * there is one, and the doors.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { SecretText } from "@purser/core"
import { ChargePipeline, PipelineOptions, Reconciler } from "@purser/engine"
import { PgAttention } from "@purser/postgres"
import { Stores } from "@purser/purser"
import { StripeAccount, StripeGateway } from "@purser/stripe"
import { Config, Effect, Layer, Option } from "effect"
import { Access, type AccessOptions } from "./Access.ts"
import { Console } from "./Console.ts"
import { ConsoleStores } from "./ConsoleStores.ts"
import { ProcessorDesk } from "./ProcessorDesk.ts"
import { RunDesk } from "./RunDesk.ts"
import { VaultRoom } from "./VaultRoom.ts"

/** Acts that ask Stripe, under a name that the event trail tells from a worker's. */
const desk = ProcessorDesk.layer.pipe(
  Layer.provide(Reconciler.layerNoDeps),
  Layer.provideMerge(ChargePipeline.layer),
  Layer.provide(Layer.mergeAll(StripeGateway.layerConfig, StripeAccount.layerConfig, PgAttention.layer)),
  Layer.provide(PipelineOptions.layer({ worker: "console" }))
)

const deskWithKey = Layer.unwrap(Effect.map(Config.option(Config.Redacted("PURSER_STRIPE_KEY")), (key) => Option.isSome(key) ? desk : Layer.empty))

/** The console as the configuration says, behind these doors. */
export const layerConsole = (access: AccessOptions) =>
  Console.layer.pipe(
    Layer.provide(SecretText.layer([access.operatorToken, access.viewerToken, access.proofSecret].filter((secret) => secret !== undefined))),
    Layer.provide(Layer.mergeAll(Access.layer(access), ConsoleStores.layer, deskWithKey, RunDesk.layer, VaultRoom.layerConfig)),
    Layer.provideMerge(Stores.layerConfig),
    Layer.provide(NodeServices.layer)
  )
