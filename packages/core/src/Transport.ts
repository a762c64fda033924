/**
 * The contract of a transport: `ChargeClient` submits requests, `ChargeServer` serves them. Which one an app uses is a
 * line of configuration; the table of names belongs to the app, so that this module knows no driver.
 *
 * A transport is at-least-once at best: it may lose, repeat and reorder. It never decides whether a charge is made.
 */
import { Config, Effect, Layer } from "effect"
import type { ChargeClient } from "./ChargeClient.ts"
import type { ChargeServer } from "./ChargeServer.ts"
import { makeMemoryTransport } from "./internal/transportMemory.ts"

/** Both sides of one transport. */
export type TransportServices = ChargeClient | ChargeServer

/** Layers of transports, and the choice of one by configuration. */
export const Transport = {
  /** Both sides in this process. Every value is encoded to the wire and back, so that nothing passes that a socket could not carry. */
  layerMemory: Layer.effectContext(makeMemoryTransport),

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
