/**
 * The contract of a transport: `ChargeClient` submits requests, `ChargeServer` serves them. Which one an app uses is a
 * line of configuration; the table of names belongs to the app, so that this module knows no driver.
 *
 * A transport is at-least-once at best: it may lose, repeat and reorder. It never decides whether a charge is made.
 */
import { Config, Context, Effect, Layer } from "effect"
import type { ChargeOutcome } from "./ChargeOutcome.ts"
import type { ChargeRequest } from "./ChargeRequest.ts"
import { makeMemoryTransport } from "./internal/transportMemory.ts"
import type { PipelineError, SubmitError } from "./SubmitError.ts"
import type { TransportError } from "./TransportError.ts"

/** The sending side. Submitting the same request again, at any time, is safe. */
export class ChargeClient extends Context.Service<ChargeClient, {
  readonly submit: (request: ChargeRequest) => Effect.Effect<ChargeOutcome, SubmitError>
}>()("@purser/core/ChargeClient") {}

/** What a served request calls. It may be interrupted when the server closes. */
export type ChargeHandler = (request: ChargeRequest) => Effect.Effect<ChargeOutcome, PipelineError>

/** The receiving side. */
export class ChargeServer extends Context.Service<ChargeServer, {
  /** Serves until interrupted, then finishes what it has taken within a bound. Every request that can be read is answered, also with an error. */
  readonly serve: (handler: ChargeHandler) => Effect.Effect<never, TransportError>
}>()("@purser/core/ChargeServer") {}

/** Both sides of one transport. */
export type TransportServices = ChargeClient | ChargeServer

/** Layers of transports, and the choice of one by configuration. */
export const Transport = {
  /** Both sides in this process. Every value is encoded to the wire and back, so that nothing passes that a socket could not carry. */
  layerMemory: Layer.effectContext(makeMemoryTransport) satisfies Layer.Layer<TransportServices> as Layer.Layer<TransportServices>,

  /** Picks a layer from the app's table by the configuration key; a wrong name fails at start with the allowed ones. */
  layerFromConfig: <const Table extends Record<string, Layer.Layer<TransportServices, any, any>>>(
    key: string,
    table: Table,
    options?: { readonly default?: Extract<keyof Table, string> }
  ): Layer.Layer<TransportServices, Layer.Error<Table[keyof Table]> | Config.ConfigError, Layer.Services<Table[keyof Table]>> => {
    const names = Object.keys(table) as Array<Extract<keyof Table, string>>
    const choice = Config.Literals(names, key).pipe(Config.withDefault(options?.default ?? names[0]!))
    return Layer.unwrap(Effect.map(choice, (name) => table[name]!))
  }
}
