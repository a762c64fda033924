/** The socket at which a server receives, and telling the clients of this process where it is. */
import { Effect } from "effect"
import type { Endpoint } from "../Endpoint.ts"
import type { SocketSettings } from "../SocketSettings.ts"
import { openZmqSocket, type ZmqSocketOptions } from "../ZmqSocket.ts"
import type { AnnouncedAddresses } from "./addresses.ts"
import type { Zeromq } from "./native.ts"

/** How to open it. */
export interface ServerSocketOptions extends Pick<ZmqSocketOptions, "handover" | "hear"> {
  readonly kind: "router" | "pull" | "subscriber" | "pair"
  readonly endpoints: ReadonlyArray<Endpoint>
  readonly settings: SocketSettings
  readonly announced: AnnouncedAddresses | undefined
}

/** Opens it, and announces what was bound until the scope closes. */
export const openServerSocket = Effect.fnUntraced(function*(zmq: Zeromq, { announced, ...options }: ServerSocketOptions) {
  const { endpoints, settings } = options
  // A mandatory send to a full or absent peer fails at once: one peer must not hold up the others.
  const socket = yield* openZmqSocket(zmq, { ...options, sendTimeoutMs: 0, lingerMs: settings.lingerMs })
  const connected = endpoints.filter(({ attach }) => attach === "connect").map(({ address }) => address)
  yield* Effect.annotateLogs(Effect.logDebug("serving charges"), { endpoints: [...socket.bound, ...connected].join(",") })
  if (announced !== undefined) {
    for (const address of socket.bound) {
      const endpoint: Endpoint = { attach: "connect", address, ipv6: address.startsWith("tcp://[") }
      yield* Effect.acquireRelease(announced.announce(endpoint), () => announced.withdraw(endpoint))
    }
  }
  return socket
})
