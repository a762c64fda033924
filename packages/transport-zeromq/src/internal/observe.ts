/**
 * What happens on a socket's connections, as debug lines and a counter. It decides nothing: a connection that comes and
 * goes is libzmq's business, and a request that gets no answer is noticed by its deadline.
 *
 * An observer is read until it says that its socket has ended, which is after the socket was closed and its connections
 * wound up. Nobody may stop reading before: an observer that nothing refers to is collected, the next event of a connection
 * then has nowhere to go, and libzmq's one thread for all sockets of the process waits for ever with it.
 */
import { Effect, Metric } from "effect"
import type { Event, Observer } from "zeromq"
import { ZmqMetrics } from "../ZmqMetrics.ts"

/** Reads a socket's events until it has ended, and tells them to whoever wants them. Not to be interrupted. */
export const observe = (events: Observer, routingId: string, onEvent?: (event: Event) => void): Effect.Effect<void> =>
  Effect.tryPromise(() => events.receive()).pipe(
    Effect.tap((event) => Metric.update(ZmqMetrics.events, event.type)),
    Effect.tap((event) => Effect.sync(() => onEvent?.(event))),
    Effect.tap((event) =>
      Effect.annotateLogs(Effect.logDebug("socket event"), {
        event: event.type,
        routingId,
        ...("address" in event ? { address: event.address } : {})
      })
    ),
    Effect.repeat({ until: (event) => event.type === "end" }),
    Effect.ignore
  )
