/** Counters of the Majordomo broker, under the names that a scraper sees. */
import { Metric } from "effect"

const counter = (name: string, description: string) => Metric.counter(`purser_broker_${name}`, { description, incremental: true })
const gauge = (name: string, description: string) => Metric.gauge(`purser_broker_${name}`, { description })

/** Counters and gauges of a broker. */
export const BrokerMetrics = {
  /** Workers that are known now. */
  workers: gauge("workers", "workers that are known"),
  /** Requests that wait for a worker. */
  waiting: gauge("waiting_requests", "requests that wait for a worker"),
  /** Requests that workers hold. */
  given: gauge("given_requests", "requests that workers hold"),
  /** Workers that were dropped, by the reason. */
  droppedWorkers: Metric.frequency("purser_broker_dropped_workers_total", { description: "workers that were dropped, by reason" }),
  /** Requests that a dropped worker had, and that went back to the queue. */
  requeued: counter("requeued_requests_total", "requests of dropped workers that went to others"),
  /** Requests whose sender gave up before a worker was free. */
  expired: counter("expired_requests_total", "requests that waited for longer than their sender"),
  /** Answers from a worker that does not hold the request; nobody gets them. */
  staleReplies: counter("stale_replies_total", "answers of workers that did not hold the request"),
  /** Requests that were refused because the queue was full, or the broker was closing. */
  refused: counter("refused_requests_total", "requests that were refused"),
  /** Who said READY without the fleet's key. */
  refusedWorkers: counter("refused_workers_total", "READY of peers that do not hold the fleet's key"),
  /** Messages that are none of 18/MDP. */
  malformed: counter("malformed_messages_total", "messages that are none of the protocol"),
  /** Answers whose client was gone or full. */
  unroutableReplies: counter("unroutable_replies_total", "answers whose client was gone or full")
} as const
