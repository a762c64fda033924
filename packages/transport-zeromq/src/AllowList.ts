/**
 * Whose public keys are let in: a folder of public certificates, one for each peer, as CZMQ and pyzmq keep them.
 *
 * A file added or taken away counts from the next handshake on, and for sealed messages within seconds. A folder that
 * cannot be read lets nobody in.
 */
import { TransportError, Unauthorized } from "@purser/core"
import { Effect, Ref, Result, type Scope } from "effect"
import { readdir, readFile } from "node:fs/promises"
import { basename, join } from "node:path"
import { type CurvePublicKey, parseCertificate } from "./CurveKey.ts"

/** Names of peers by their public keys. */
export type PeerNames = ReadonlyMap<string, string>

/** A list that may change while it is used. */
export interface AllowList {
  /** As it was read last. */
  readonly names: () => PeerNames
  /** Reads it anew. */
  readonly refresh: Effect.Effect<PeerNames>
}

const unreadable = (place: string) => (error: unknown) =>
  new TransportError({ reason: new Unauthorized({ detail: `${place} cannot be read: ${String(error)}` }), chargeKey: null })

const readPeer = Effect.fnUntraced(function*(path: string) {
  const text = yield* Effect.tryPromise({ try: () => readFile(path, "utf8"), catch: unreadable(path) })
  const { name, publicKey } = yield* Effect.fromResult(parseCertificate(text, path))
  return [publicKey, name ?? basename(path, ".key")] as const
})

const readFolder = Effect.fnUntraced(function*(folder: string) {
  const files = yield* Effect.tryPromise({ try: () => readdir(folder), catch: unreadable(folder) })
  const peers = yield* Effect.forEach(files.filter((file) => file.endsWith(".key")).sort(), (file) => readPeer(join(folder, file)), { concurrency: 8 })
  return new Map<string, string>(peers)
})

/** Sealed messages of a peer that was taken off the list are refused after this time at the latest. */
const refreshMs = 2000

/** The certificates (`*.key`) of a folder. The first reading must succeed; a later one that fails empties the list. */
export const allowFolder = Effect.fnUntraced(function*(folder: string): Effect.fn.Return<AllowList, TransportError, Scope.Scope> {
  const names = yield* Ref.make<PeerNames>(yield* readFolder(folder))
  const refresh = Effect.result(readFolder(folder)).pipe(
    Effect.tap((read) => Result.isFailure(read) ? Effect.logError("nobody is let in", read.failure.message) : Effect.void),
    Effect.map(Result.getOrElse((): PeerNames => new Map())),
    Effect.tap((read) => Ref.set(names, read))
  )
  yield* Effect.sleep(refreshMs).pipe(Effect.andThen(refresh), Effect.forever, Effect.forkScoped)
  return { names: () => Ref.getUnsafe(names), refresh }
})

/** A list that does not change: public keys by name. */
export const allowKeys = (keys: Readonly<Record<string, CurvePublicKey>>): AllowList => {
  const names: PeerNames = new Map(Object.entries(keys).map(([name, key]) => [key, name]))
  return { names: () => names, refresh: Effect.succeed(names) }
}
