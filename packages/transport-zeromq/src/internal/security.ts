/** CURVE's side of a socket: a server's where it binds, a client's where it connects, nothing inside one process. */
import { Closed, TransportError } from "@purser/core"
import { Effect, Redacted, type Scope } from "effect"
import type { CurvePublicKey } from "../CurveKey.ts"
import { peerNames } from "../CurveSettings.ts"
import type { Endpoint } from "../Endpoint.ts"
import type { SocketSettings } from "../SocketSettings.ts"
import type { Zeromq } from "./native.ts"
import { openZapDomain } from "./zapDesk.ts"

/** Options of the addon's constructors. */
export interface Security {
  readonly curveServer?: boolean
  readonly curvePublicKey?: string
  readonly curveSecretKey?: string
  readonly curveServerKey?: string
  readonly zapDomain?: string
  readonly zapEnforceDomain?: boolean
}

/** The options of a socket with these addresses; a server's list is asked at each handshake until the scope closes. */
export const securityOf = Effect.fnUntraced(function*(
  zmq: Zeromq,
  options: { readonly endpoints: ReadonlyArray<Endpoint>; readonly settings: SocketSettings; readonly peerKey?: CurvePublicKey | undefined }
): Effect.fn.Return<Security, TransportError, Scope.Scope> {
  const { curve } = options.settings
  const remote = options.endpoints.filter(({ address }) => !address.startsWith("inproc://"))
  if (curve === undefined || remote.length === 0) return {}
  const binds = remote.filter(({ attach }) => attach === "bind").length
  const curveSecretKey = Redacted.value(curve.own.secretKey)
  if (binds === 0) {
    return { curvePublicKey: curve.own.publicKey, curveSecretKey, curveServerKey: options.peerKey ?? curve.serverKey ?? curve.own.publicKey }
  }
  if (binds < remote.length) {
    const endpoint = remote.map(({ address }) => address).join(",")
    return yield* new TransportError({ reason: new Closed({ endpoint, detail: "a socket with CURVE binds or connects, not both" }), chargeKey: null })
  }
  const zapDomain = yield* openZapDomain(zmq, (publicKey) =>
    Effect.map(curve.clients === undefined ? Effect.undefined : curve.clients.refresh, (listed) => peerNames(curve, listed).get(publicKey)))
  return { curveServer: true, curveSecretKey, zapDomain, zapEnforceDomain: true }
})
