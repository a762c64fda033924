/**
 * How a side proves who it is and whom it lets in: its own key pair, the key of the servers that it connects to, and the
 * list of peers that may connect to it.
 *
 * Workers, brokers and forwarders of one fleet share the fleet's key pair; each producer has its own. A socket that binds
 * is CURVE's server and lets in the peers of its list and its own fleet, nobody else. There is no mode that encrypts
 * without asking who is there.
 */
import { TransportError, Unauthorized } from "@purser/core"
import { Config, Effect, Option, type Scope } from "effect"
import { readFile } from "node:fs/promises"
import { type AllowList, allowFolder, allowKeys } from "./AllowList.ts"
import { type CurveKeyPair, type CurvePublicKey, parseCertificate, parsePublicKey } from "./CurveKey.ts"

/** One side's keys. */
export interface CurveSettings {
  readonly own: CurveKeyPair
  /** Of whom this side connects to. Default: its own fleet's, which is its own public key. */
  readonly serverKey?: CurvePublicKey | undefined
  /** Who may connect to what this side binds, beside its own fleet and `serverKey`. Default: nobody. */
  readonly clients?: AllowList | undefined
}

/** The files that hold them. */
export interface CurveFiles {
  /** `PURSER_CURVE_KEY_FILE`: this side's secret certificate. */
  readonly keyFile: string
  /** `PURSER_CURVE_SERVER_KEY`: a public key, or the file of a certificate. */
  readonly serverKey?: string | undefined
  /** `PURSER_CURVE_CLIENTS`: a folder of public certificates. */
  readonly clients?: string | undefined
}

const refused = (detail: string) => new TransportError({ reason: new Unauthorized({ detail }), chargeKey: null })

const readCertificate = Effect.fnUntraced(function*(place: string, path: string) {
  const text = yield* Effect.tryPromise({ try: () => readFile(path, "utf8"), catch: (error) => refused(`${place}: ${path} cannot be read: ${String(error)}`) })
  return yield* Effect.fromResult(parseCertificate(text, path))
})

/** Reads the files; every refusal names the file. */
export const readCurveFiles = Effect.fnUntraced(function*(files: CurveFiles): Effect.fn.Return<CurveSettings, TransportError, Scope.Scope> {
  const { publicKey, secretKey } = yield* readCertificate("PURSER_CURVE_KEY_FILE", files.keyFile)
  if (secretKey === null) return yield* refused(`${files.keyFile} holds no secret key; purser keygen writes one that ends in .key_secret`)
  const { serverKey } = files
  return {
    own: { publicKey, secretKey },
    serverKey: serverKey === undefined
      ? publicKey
      : /^.{40}$/.test(serverKey) && !serverKey.endsWith(".key")
      ? yield* Effect.fromResult(parsePublicKey(serverKey, "PURSER_CURVE_SERVER_KEY"))
      : (yield* readCertificate("PURSER_CURVE_SERVER_KEY", serverKey)).publicKey,
    clients: files.clients === undefined ? allowKeys({}) : yield* allowFolder(files.clients)
  }
})

const given = (name: string) => Config.map(Config.option(Config.String(name)), Option.getOrUndefined)

/** The configuration's keys; undefined when `PURSER_CURVE_KEY_FILE` is not set. */
export const curveConfig = Effect.gen(function*() {
  const keyFile = yield* given("PURSER_CURVE_KEY_FILE")
  const serverKey = yield* given("PURSER_CURVE_SERVER_KEY")
  const clients = yield* given("PURSER_CURVE_CLIENTS")
  if (keyFile !== undefined) return yield* readCurveFiles({ keyFile, serverKey, clients })
  // Half a configuration must not mean no encryption.
  const orphan = serverKey !== undefined ? "PURSER_CURVE_SERVER_KEY" : clients !== undefined ? "PURSER_CURVE_CLIENTS" : undefined
  return orphan === undefined ? undefined : yield* refused(`${orphan} is set, but PURSER_CURVE_KEY_FILE is not`)
})

/** Names of those who may connect to a side, its own fleet among them. */
export const peerNames = (
  { clients, own, serverKey }: CurveSettings,
  listed: ReadonlyMap<string, string> = clients?.names() ?? new Map()
): ReadonlyMap<string, string> =>
  new Map([...(serverKey === undefined ? [] : [[serverKey, "server"] as const]), [own.publicKey, fleetName], ...listed])

/** What peers that hold the fleet's key are called. */
export const fleetName = "fleet"
