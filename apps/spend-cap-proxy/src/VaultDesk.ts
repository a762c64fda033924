/** The layers of programs: the acts of people on the configured store, and a proxy with all that it needs. */
import type { DatabaseServices } from "@purser/postgres"
import { Effect, Layer } from "effect"
import * as AdminSocket from "./AdminSocket.ts"
import * as ProxyDatabase from "./ProxyDatabase.ts"
import { ProxyServer } from "./ProxyServer.ts"
import { VaultAdmin } from "./VaultAdmin.ts"
import { VaultStore } from "./VaultStore.ts"

const direct = Layer.provide(VaultAdmin.layer, ProxyDatabase.layerConfig)

/** Done in place of waiting, once a proxy answers for the folder: it has it for good. */
const servedBy = <A>(dataDir: string, then: A) => Effect.map(AdminSocket.isServed(dataDir), (served) => served ? then : undefined)

/** `VaultAdmin` on the configured store, or through the proxy that has its folder open. */
export const layerAdmin = Layer.unwrap(Effect.gen(function*() {
  const dataDir = yield* ProxyDatabase.proxyDataDir
  if (dataDir === undefined) return direct
  return ProxyDatabase.patiently(direct, servedBy(dataDir, () => AdminSocket.layerClient(dataDir)))
}))

/** Store and acts over one database. */
export const layerStores: Layer.Layer<VaultStore | VaultAdmin, never, DatabaseServices> = Layer.merge(VaultStore.layer, VaultAdmin.layer)

const socket = Layer.unwrap(Effect.map(ProxyDatabase.proxyDataDir, (dataDir) => dataDir === undefined ? Layer.empty : AdminSocket.layerServer(dataDir)))

const database = Layer.unwrap(Effect.map(ProxyDatabase.proxyDataDir, (dataDir) =>
  dataDir === undefined
    ? ProxyDatabase.layerConfig
    : ProxyDatabase.patiently(ProxyDatabase.layerConfig, servedBy(dataDir, (failed: typeof ProxyDatabase.layerConfig) => failed))))

/**
 * The proxy as configured, its store, and the socket for `purser vault` when the store is a folder. The socket closes first, so that a proxy that is
 * to follow waits for this one's last calls.
 */
export const layerProxy = socket.pipe(
  Layer.provideMerge(ProxyServer.layerConfig),
  Layer.provideMerge(layerStores),
  Layer.provideMerge(database)
)
