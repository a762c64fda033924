/** The default table of transports, and the choice of one by `PURSER_TRANSPORT`. */
import { Transport } from "@purser/core"
import { ZmqTransport } from "@purser/transport-zeromq"

/** Name to layer; `req-rep` is the default. */
export const transports = {
  "req-rep": ZmqTransport.layerReqRep,
  "router-dealer": ZmqTransport.layerRouterDealer,
  "push-pull": ZmqTransport.layerPushPull,
  "pub-sub": ZmqTransport.layerPubSub,
  pair: ZmqTransport.layerPair(),
  majordomo: ZmqTransport.layerMajordomo,
  memory: Transport.layerMemory
} as const

/** The names that `PURSER_TRANSPORT` and `--transport` take. */
export const transportNames = ["req-rep", "router-dealer", "push-pull", "pub-sub", "majordomo", "pair", "memory"] as const
export type TransportName = typeof transportNames[number]

/** Both sides in one process, for a run with its own workers: over loopback sockets where the transport has any. */
export const loopbackTransports = {
  "req-rep": ZmqTransport.layerReqRepLoopback(),
  "router-dealer": ZmqTransport.layerRouterDealerLoopback(),
  "push-pull": ZmqTransport.layerPushPullLoopback(),
  "pub-sub": ZmqTransport.layerPubSubLoopback(),
  pair: ZmqTransport.layerPair(),
  majordomo: ZmqTransport.layerMajordomoLoopback(),
  memory: Transport.layerMemory
} as const

/** The transport that the configuration names. */
export const TransportConfig = {
  layer: Transport.layerFromConfig("PURSER_TRANSPORT", transports, { default: "req-rep" })
}
