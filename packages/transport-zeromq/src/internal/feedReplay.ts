/**
 * The publisher's second socket: pages of history and of snapshots for whoever asks. It keeps nothing of a reader between
 * two pages, so that a reader that is slow, dies or moves to another publisher costs nothing here.
 */
import { type ChargeKey, EventLog, type FeedCursor, FeedError, type FeedEvent, FeedRefused, type TransportError } from "@purser/core"
import { Effect, Metric, Queue, type Scope } from "effect"
import type { Endpoint } from "../Endpoint.ts"
import type { SocketSettings } from "../SocketSettings.ts"
import { ZmqMetrics } from "../ZmqMetrics.ts"
import { type Frames, openZmqSocket } from "../ZmqSocket.ts"
import { type Answer, inFrames, readAsk, verbs, type Want, write } from "./feedWire.ts"
import type { Zeromq } from "./native.ts"

/** What it needs. */
export interface ReplayOptions {
  readonly zmq: Zeromq
  readonly endpoints: ReadonlyArray<Endpoint>
  readonly settings: SocketSettings
  /** The publisher's life, and what it published last. */
  readonly present: () => FeedCursor & { readonly epoch: string }
}

/** Requests that are answered at a time. */
const atOnce = 8

/** Answers until the scope closes; gives the addresses that were bound. */
export const serveReplay = Effect.fnUntraced(function*(options: ReplayOptions): Effect.fn.Return<ReadonlyArray<string>, TransportError, EventLog | Scope.Scope> {
  const { endpoints, present, settings, zmq } = options
  const log = yield* EventLog
  const socket = yield* openZmqSocket(zmq, { kind: "router", endpoints, settings, sendTimeoutMs: 0, lingerMs: settings.lingerMs })

  const page = Effect.fnUntraced(function*(id: string, want: Want, limit: number): Effect.fn.Return<ReadonlyArray<Answer>, FeedError> {
    const answer = (events: ReadonlyArray<FeedEvent>, at: Omit<FeedCursor, "epoch">, next: ChargeKey | null): ReadonlyArray<Answer> => [
      ...inFrames(events).map((part): Answer => ({ verb: verbs.sync, body: { v: 1, id, events: part } })),
      { verb: verbs.done, body: { v: 1, id, epoch: present().epoch, sequence: at.sequence, event: at.event, next } }
    ]
    if ("after" in want) return answer(yield* log.read(want.after, limit), { sequence: present().sequence }, null)
    if ("head" in want) return answer([], present(), null)
    const at = want.snapshot.at === null ? present() : { sequence: want.snapshot.at }
    const { next, states } = yield* log.snapshot(at.sequence, want.snapshot.key, limit)
    return answer(states, at, next)
  })

  const handle = Effect.fnUntraced(function*(frames: Frames) {
    // A peer may put the empty delimiter of REQ in front.
    const body = frames.slice(frames[1]?.length === 0 ? 2 : 1)
    const envelope = frames.slice(0, frames.length - body.length)
    const ask = body.length === 2 && body[0]!.toString("latin1") === verbs.ask ? readAsk(body[1]) : undefined
    if (ask === undefined) yield* Metric.update(ZmqMetrics.refusedRequests, 1)
    const refused = new FeedError({ reason: new FeedRefused({ detail: "expected ICANHAZ? and a request of the feed" }) })
    const failed = (id: string) => (error: FeedError): ReadonlyArray<Answer> => [{ verb: verbs.error, body: { v: 1, id, error } }]
    const answers = ask === undefined
      ? failed("?")(refused)
      : yield* Effect.match(page(ask.id, ask.want, ask.limit), { onFailure: failed(ask.id), onSuccess: (page) => page })
    // A reader that is gone or takes no more asks again.
    yield* Effect.forEach(answers, (answer) => socket.send([...envelope, ...write(answer)]), { discard: true }).pipe(
      Effect.catch((error) => Effect.andThen(Metric.update(ZmqMetrics.unroutableReplies, 1), Effect.logDebug("a page was not sent", error.message)))
    )
  })

  yield* Queue.takeAll(socket.incoming).pipe(
    Effect.flatMap((batch) => Effect.forEach(batch, handle, { concurrency: atOnce, discard: true })),
    Effect.forever,
    Effect.ignore,
    Effect.forkScoped
  )
  return socket.bound
})
