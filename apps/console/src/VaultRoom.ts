/**
 * The way to the spend-cap proxy's store, opened when somebody looks and closed soon after: an embedded store can be open in
 * one process alone, and that should be the proxy.
 */
import { type AuditLine, ProxyDatabase, type Vault, VaultAdmin, VaultDesk, type VaultStoreError } from "@purser/spend-cap-proxy"
import { type Config, Context, Duration, Effect, FileSystem, Layer, RcRef } from "effect"
import { Away } from "./api/ConsoleError.ts"

const idle = Duration.seconds(5)
const away = (error: { readonly message: string }) => new Away({ message: error.message })

/** The room. */
export class VaultRoom extends Context.Service<VaultRoom, {
  /** Every vault, and the newest lines of the trail, the newest first. */
  readonly look: Effect.Effect<{ readonly vaults: ReadonlyArray<Vault>; readonly log: ReadonlyArray<AuditLine> }, Away>
  /** Whether it was the other way before. */
  readonly setKilled: (killed: boolean, reason: string) => Effect.Effect<boolean, Away>
  /** Whether a key was in force before. */
  readonly revoke: (vault: string, reason: string) => Effect.Effect<boolean, Away>
}>()("@purser/console/VaultRoom") {
  /** Over whatever opens the store. */
  static readonly layerWith = <E extends { readonly message: string }>(admin: Layer.Layer<VaultAdmin, E>): Layer.Layer<VaultRoom> =>
    Layer.effect(VaultRoom, Effect.gen(function*() {
      const ref = yield* RcRef.make({ acquire: Layer.build(Layer.fresh(admin)), idleTimeToLive: idle })
      const use = <A>(act: (admin: VaultAdmin["Service"]) => Effect.Effect<A, VaultStoreError>): Effect.Effect<A, Away> =>
        Effect.scoped(Effect.flatMap(RcRef.get(ref), (services) => act(Context.get(services, VaultAdmin)))).pipe(Effect.mapError(away))
      return VaultRoom.of({
        look: use((admin) =>
          Effect.gen(function*() {
            const vaults = yield* admin.list
            const after = yield* admin.tail(undefined, 200)
            return { vaults, log: (yield* admin.log({ vault: undefined, after, limit: 200 })).toReversed() }
          })),
        setKilled: (killed, reason) => use((admin) => admin.setKilled(killed, reason)),
        revoke: (id, reason) => use((admin) =>
          Effect.flatMap(admin.show(id), ({ keys }) => Effect.as(admin.revoke(id, reason), keys.some(({ revokedAtMs }) => revokedAtMs === null))))
      })
    }))

  /** The store of the proxy's settings, where there is one: a URL, or a folder that exists. */
  static readonly layerConfig: Layer.Layer<never, Config.ConfigError, FileSystem.FileSystem> = Layer.unwrap(Effect.gen(function*() {
    const folder = yield* ProxyDatabase.proxyDataDir
    const fs = yield* FileSystem.FileSystem
    const isThere = folder === undefined || (yield* Effect.orElseSucceed(fs.exists(folder), () => false))
    return isThere ? VaultRoom.layerWith(VaultDesk.layerAdmin) : Layer.empty
  }))
}
