/**
 * How `purser vault` reaches a store that a running proxy holds: an embedded folder has one owner at a time, so the proxy
 * answers for it on a local socket that only its user may open. A PostgreSQL store needs no socket.
 */
import { Effect, Layer, Redacted, Schema } from "effect"
import { Rpc, RpcClient, RpcGroup, RpcSerialization, RpcServer } from "effect/rpc"
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import * as NodeSocketServer from "@effect/platform-node/NodeSocketServer"
import { createHash } from "node:crypto"
import { chmodSync, mkdirSync, rmSync } from "node:fs"
import { connect } from "node:net"
import { tmpdir, userInfo } from "node:os"
import { join, resolve } from "node:path"
import { AuditLine, NewKey, NewVault, Vault } from "./Vault.ts"
import { VaultAdmin } from "./VaultAdmin.ts"
import { VaultStoreError, VaultStoreUnavailable } from "./VaultStoreError.ts"

const error = VaultStoreError

const Rpcs = RpcGroup.make(
  Rpc.make("create", { payload: NewVault, success: Schema.Struct({ key: Schema.String, vault: Vault }), error }),
  Rpc.make("addKey", { payload: NewKey, success: Schema.Struct({ key: Schema.String, vault: Vault }), error }),
  Rpc.make("list", { success: Schema.Array(Vault), error }),
  Rpc.make("show", { payload: { id: Schema.String }, success: Vault, error }),
  Rpc.make("revoke", { payload: { id: Schema.String, reason: Schema.String }, success: Vault, error }),
  Rpc.make("raise", {
    payload: { id: Schema.String, expectedMinor: Schema.Int, headroomPercent: Schema.NullOr(Schema.Int), reason: Schema.String },
    success: Vault,
    error
  }),
  Rpc.make("release", { payload: { id: Schema.String, customer: Schema.String, reason: Schema.String }, success: Vault, error }),
  Rpc.make("setKilled", { payload: { killed: Schema.Boolean, reason: Schema.String }, success: Schema.Boolean, error }),
  Rpc.make("log", {
    payload: { vault: Schema.NullOr(Schema.String), after: Schema.Finite, limit: Schema.Int },
    success: Schema.Array(AuditLine),
    error
  }),
  Rpc.make("tail", { payload: { vault: Schema.NullOr(Schema.String), lines: Schema.Int }, success: Schema.Finite, error })
)

const handlers = Rpcs.toLayer(Effect.gen(function*() {
  const admin = yield* VaultAdmin
  return {
    create: (vault) => Effect.map(admin.create(vault), ({ key, vault }) => ({ key: Redacted.value(key), vault })),
    addKey: (given) => Effect.map(admin.addKey(given), ({ key, vault }) => ({ key: Redacted.value(key), vault })),
    list: () => admin.list,
    show: ({ id }) => admin.show(id),
    revoke: ({ id, reason }) => admin.revoke(id, reason),
    raise: (change) => admin.raise(change),
    release: (given) => admin.release(given),
    setKilled: ({ killed, reason }) => admin.setKilled(killed, reason),
    log: ({ after, limit, vault }) => admin.log({ vault: vault ?? undefined, after, limit }),
    tail: ({ lines, vault }) => admin.tail(vault ?? undefined, lines)
  }
}))

/** A path of a socket may have about a hundred bytes. */
const pathMax = 100

/** Where the proxy of a folder listens. Long folders get a folder of the user's own among the temporary ones. */
const socketPath = (dataDir: string): string => {
  const path = join(resolve(dataDir), "admin.sock")
  if (Buffer.byteLength(path) <= pathMax) return path
  return join(tmpdir(), `purser-proxy-${userInfo().uid}`, `${createHash("sha256").update(resolve(dataDir)).digest("hex").slice(0, 24)}.sock`)
}

/** Answers for the store in this folder until the scope closes. Whoever calls this must own the folder. */
export const layerServer = (dataDir: string) => {
  const path = socketPath(dataDir)
  const server = Layer.unwrap(Effect.sync(() => {
    mkdirSync(join(path, ".."), { recursive: true, mode: 0o700 })
    // Left by a proxy that was killed: the folder is ours.
    rmSync(path, { force: true })
    return NodeSocketServer.layer({ path })
  }))
  const restrict = Layer.effectDiscard(Effect.sync(() => chmodSync(path, 0o600)))
  return RpcServer.layer(Rpcs).pipe(
    Layer.provide(handlers),
    Layer.provide(RpcServer.layerProtocolSocketServer),
    Layer.provide(RpcSerialization.layerNdjson),
    Layer.provide(Layer.provideMerge(restrict, server))
  )
}

/** True when somebody answers on the socket of this folder; what a killed proxy left behind answers nobody. */
export const isServed = (dataDir: string): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    const socket = connect(socketPath(dataDir))
    const done = (served: boolean) => {
      socket.destroy()
      resume(Effect.succeed(served))
    }
    socket.on("connect", () => done(true)).on("error", () => done(false))
    return Effect.sync(() => socket.destroy())
  })

/** The acts of people, carried out by the proxy that owns the folder. */
export const layerClient = (dataDir: string): Layer.Layer<VaultAdmin> =>
  Layer.effect(VaultAdmin, Effect.gen(function*() {
    const client = yield* RpcClient.make(Rpcs)
    const ask = <A>(call: Effect.Effect<A, VaultStoreError | { readonly _tag: "RpcClientError"; readonly message: string }>) =>
      Effect.mapError(call, (failure) =>
        failure._tag === "RpcClientError"
          ? new VaultStoreError({ reason: new VaultStoreUnavailable({ operation: "the running proxy", detail: failure.message }) })
          : failure)
    return VaultAdmin.of({
      create: (vault) => Effect.map(ask(client.create(vault)), ({ key, vault }) => ({ key: Redacted.make(key), vault })),
      addKey: (given) => Effect.map(ask(client.addKey(given)), ({ key, vault }) => ({ key: Redacted.make(key), vault })),
      list: ask(client.list()),
      show: (id) => ask(client.show({ id })),
      revoke: (id, reason) => ask(client.revoke({ id, reason })),
      raise: (change) => ask(client.raise(change)),
      release: (given) => ask(client.release(given)),
      setKilled: (killed, reason) => ask(client.setKilled({ killed, reason })),
      log: ({ after, limit, vault }) => ask(client.log({ vault: vault ?? null, after, limit })),
      tail: (vault, lines) => ask(client.tail({ vault: vault ?? null, lines }))
    })
  })).pipe(
    Layer.provide(RpcClient.layerProtocolSocket({ retryTransientErrors: false })),
    Layer.provide(RpcSerialization.layerNdjson),
    Layer.provide(NodeSocket.layerNet({ path: socketPath(dataDir) })),
    Layer.orDie
  )
