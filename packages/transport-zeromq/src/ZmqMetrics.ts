/** Counters of the ZeroMQ transports, under the names that a scraper sees. */
import { Metric } from "effect"

const counter = (name: string, description: string) => Metric.counter(`purser_zmq_${name}`, { description, incremental: true })

/** Counters and gauges of this package. */
export const ZmqMetrics = {
  /** Sockets that are open now. */
  openSockets: Metric.gauge("purser_zmq_open_sockets", { description: "sockets that are open" }),
  /** Attempts of requests that ended without an answer. */
  timeouts: counter("request_timeouts_total", "attempts without an answer in time"),
  /** Answers that match no request of their socket, or cannot be read; none is given to another request. */
  strayReplies: counter("stray_replies_total", "answers that belong to no waiting request"),
  /** Attempts after a request's first one, of clients with a window. */
  resentRequests: counter("resent_requests_total", "requests that were sent again"),
  /** Sockets that were replaced because they heard nothing. */
  renewedSockets: counter("renewed_sockets_total", "sockets that were replaced after silence"),
  /** Answers whose requester was gone (`PeerUnreachable`), or could not take more. */
  unroutableReplies: counter("unroutable_replies_total", "answers whose requester was gone"),
  /** Requests that were answered with a refusal of the transport: malformed, oversized, too many, closing. */
  refusedRequests: counter("refused_requests_total", "requests that were refused before a handler saw them"),
  /** Connections and messages whose sender's key is not on the list, or whose seal does not fit. */
  refusedPeers: counter("refused_peers_total", "connections and messages that were not let in"),
  /** Handlers that died instead of failing. */
  handlerDefects: counter("handler_defects_total", "handlers that died"),
  /** Happenings on connections, by libzmq's name of the event. */
  events: Metric.frequency("purser_zmq_socket_events_total", { description: "events of connections" })
} as const
