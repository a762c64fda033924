/**
 * What happens on a socket's connections, as debug lines and a counter. It decides nothing: a connection that comes and
 * goes is libzmq's business, and a request that gets no answer is noticed by its deadline.
 */
import { Effect, Metric } from "effect"
import type { Observer } from "zeromq"
import { ZmqMetrics } from "../ZmqMetrics.ts"

/** Reads a socket's events until the socket closes. */
export const observe = (events: Observer, routingId: string): Effect.Effect<void> =>
  Effect.tryPromise(() => events.receive()).pipe(
    Effect.tap((event) => Metric.update(ZmqMetrics.events, event.type)),
    Effect.tap((event) =>
      Effect.annotateLogs(Effect.logDebug("socket event"), {
        event: event.type,
        routingId,
        ...("address" in event ? { address: event.address } : {})
      })
    ),
    Effect.forever,
    Effect.ignore
  )
