/**
 * The sockets that carry a window's frames, one life after the other. A life that heard nothing for long is closed with
 * what it has not sent, and the next one has an identity of its own, so that no answer to the old one reaches it.
 */
import type { TransportError } from "@purser/core"
import { Effect, Exit, Scope } from "effect"
import type { Endpoint } from "../Endpoint.ts"
import type { Frames, OutgoingFrames, ZmqSocket } from "../ZmqSocket.ts"
import type { Addresses } from "./addresses.ts"
import type { Admission } from "./admission.ts"

/** One request of a frame, as it is sent. */
export interface SentRequest<Req> {
  readonly id: string
  readonly deadlineMs: number
  readonly request: Req
  readonly traceparent?: string | undefined
}

/** One life of the sockets. */
export interface Carrier<Req = unknown> {
  /** What frames of requests name as their sender. */
  readonly client: string
  /** Sends a frame; `requests` is what it was written of, for a carrier that keeps them. The deadlines are good for this call alone. */
  readonly send: (text: string, requests: ReadonlyArray<SentRequest<Req>>) => Effect.Effect<void, TransportError>
  /** Follows a changed list of servers. */
  readonly reach: ZmqSocket["reach"]
  /** Whether the servers let this side's key in; undefined where that is not known. */
  readonly admission?: Admission | undefined
}

/** Is told what a life hears, without a fiber: answers as they came, or those that the carrier has read itself. */
export interface Listener<Answer> {
  readonly frames: (frames: Frames) => void
  readonly answers: (answers: ReadonlyArray<Answer>) => void
}

/** Opens a life. */
export type OpenCarrier<Req = unknown, Answer = never> = (
  endpoints: ReadonlyArray<Endpoint>,
  listener: Listener<Answer>
) => Effect.Effect<Carrier<Req>, TransportError, Scope.Scope>

/** The lives. Not for concurrent use, but `renew` may come at any time. */
export interface Carriers<Req> {
  /** The present life, opened when there is none; it waits while no server is known. */
  readonly current: Effect.Effect<Carrier<Req>, TransportError>
  /** Ends the present life. */
  readonly renew: Effect.Effect<void>
}

/** What a socket does with what it hears when all of it is answers. */
export const hearing = ({ frames }: Listener<never>) => (batch: ReadonlyArray<Frames>, more: () => void): void => {
  batch.forEach(frames)
  more()
}

/** Frames to send in front of a text. */
export const carrierSend = (socket: ZmqSocket, ...before: OutgoingFrames) => (text: string) => socket.send([...before, text])

/**
 * Makes them without a life; the listener is told what each of them hears. A life whose key the servers refuse is ended, and
 * `refused` is told which it was and why: nothing of it was sent, or will be.
 */
export const makeCarriers = Effect.fnUntraced(function*<Req, Answer>(
  addresses: Addresses,
  open: OpenCarrier<Req, Answer>,
  listener: Listener<Answer>,
  refused: (carrier: Carrier<Req>, detail: string) => void
): Effect.fn.Return<Carriers<Req>, never, Scope.Scope> {
  let life: { readonly carrier: Carrier<Req>; readonly scope: Scope.Closeable; endpoints: ReadonlyArray<Endpoint> } | undefined

  const renew = Effect.suspend(() => {
    const old = life
    life = undefined
    return old === undefined ? Effect.void : Scope.close(old.scope, Exit.void)
  })
  yield* Effect.addFinalizer(() => renew)

  const outer = yield* Effect.scope
  const watch = Effect.fnUntraced(function*(carrier: Carrier<Req>, { denied, refused: refusal }: Admission) {
    const detail = yield* refusal
    if (detail === undefined || life?.carrier !== carrier) return
    yield* renew
    if (yield* denied) refused(carrier, detail)
  })

  const begin = Effect.fnUntraced(function*(endpoints: ReadonlyArray<Endpoint>) {
    const scope = yield* Scope.make()
    const carrier = yield* open(endpoints, listener).pipe(Scope.provide(scope), Effect.onError(() => Scope.close(scope, Exit.void)))
    life = { carrier, scope, endpoints }
    if (carrier.admission !== undefined) yield* Effect.forkIn(watch(carrier, carrier.admission), outer)
    return carrier
  }, Effect.uninterruptible)

  return {
    renew,
    current: Effect.gen(function*() {
      const endpoints = yield* addresses
      if (life === undefined) return yield* begin(endpoints)
      if (life.endpoints !== endpoints) {
        life.endpoints = endpoints
        yield* life.carrier.reach(endpoints)
      }
      return life.carrier
    })
  }
})
