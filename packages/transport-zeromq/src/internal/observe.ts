/**
 * What happens on a socket's connections, as debug lines and a counter. It decides nothing: a connection that comes and
 * goes is libzmq's business, and a request that gets no answer is noticed by its deadline. But a side whose key is refused
 * would wait in silence until then, and is told why.
 *
 * An observer is read until it says that its socket has ended, which is after the socket was closed and its connections
 * wound up. Nobody may stop reading before: an observer that nothing refers to is collected, the next event of a connection
 * then has nowhere to go, and libzmq's one thread for all sockets of the process waits for ever with it.
 */
import { Effect, Metric } from "effect"
import type { Event, Observer } from "zeromq"
import { ZmqMetrics } from "../ZmqMetrics.ts"
import { refusalOf } from "./admission.ts"

/** Addresses that refused this process's key, and have not let it in since: each is told once, whatever sockets come after. */
const refusing = new Set<string>()
const refusingMax = 1000

const tellRefusal = (event: Event): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (event.type === "handshake") refusing.delete(event.address)
    const detail = refusalOf(event)
    if (detail === undefined || !("address" in event) || refusing.has(event.address) || refusing.size >= refusingMax) return Effect.void
    refusing.add(event.address)
    return Effect.logWarning("nothing that is sent arrives", detail)
  })

/** Reads a socket's events until it has ended, and tells them to whoever wants them. `connects`: whether it is the side that may be refused. Not to be interrupted. */
export const observe = (events: Observer, routingId: string, connects: boolean, onEvent?: (event: Event) => void): Effect.Effect<void> =>
  Effect.tryPromise(() => events.receive()).pipe(
    Effect.tap((event) => Metric.update(ZmqMetrics.events, event.type)),
    Effect.tap((event) => Effect.sync(() => onEvent?.(event))),
    Effect.tap((event) => connects ? tellRefusal(event) : Effect.void),
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
