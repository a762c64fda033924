/**
 * A service at one socket: many requests at a time, each answered on its own way back.
 *
 * A literal REP socket serves one request after the other and is dead after a handler that never answers. Here every
 * request that has a way back is answered: by the app, or by a refusal of what is malformed, too long, too much or too
 * late. An answer that cannot be sent is counted; the requester asks again.
 *
 * A request costs the fiber in which its handler runs and nothing else: the rest is plain callbacks (`workbench`).
 */
import { Backpressure, type DeadLetter, MalformedMessage, PeerUnreachable, Principal, TransportError, type TransportErrorReason, Unauthorized } from "@purser/core"
import { type Cause, Context, Effect, Metric, Queue, Result, type Scope } from "effect"
import { ZmqMetrics } from "../ZmqMetrics.ts"
import type { Frames } from "../ZmqSocket.ts"
import { senderOf } from "./frameSeal.ts"
import { makeOutbox, type WayBack } from "./outbox.ts"
import { refuseCall, type ReplyApp, type ReplyCall } from "./replyApp.ts"
import { makeWorkbench } from "./workbench.ts"

/** A received message: its way back and what was sent, which should be one frame; or why it can be neither served nor answered. */
export type Arrival =
  | { readonly _tag: "Arrival"; readonly back: WayBack; readonly payload: Frames }
  | { readonly _tag: "Unserved"; readonly reason: TransportErrorReason }

/** Where requests come in. */
export interface ReplyDesk {
  readonly incoming: Queue.Dequeue<Frames, Cause.Done>
  readonly open: (frames: Frames) => Effect.Effect<Arrival>
  /** Another way than `incoming` and `open`, without a fiber. */
  readonly direct?: DirectDesk | undefined
  /** Waits until the answers of earlier sends are with libzmq. */
  readonly flush: Effect.Effect<void>
}

/** A desk that is listened to. */
export interface DirectDesk {
  /** Gives what has come, and what comes, to a listener, which calls `more` when it is done with a batch. */
  readonly listen: (hear: (batch: ReadonlyArray<Frames>, more: () => void) => void) => void
  /** Undefined where the desk's own `open` is needed. */
  readonly open: (frames: Frames) => Arrival | undefined
}

/** Limits of the service. */
export interface ReplyServiceOptions {
  readonly label: string
  /** Handler calls at a time. */
  readonly concurrency: number
  /** Requests that are taken in, waiting ones included; a frame beyond that is refused with `Backpressure`. */
  readonly takenMax: number
  readonly requestMaxBytes: number
  readonly drainMs: number
  /** The pattern's name on dead letters. */
  readonly transport: string
  readonly bury: (letter: DeadLetter) => Effect.Effect<void>
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

// Replacing bad bytes would make one id of two different ones.
const decodeText = (body: Frames[number]) =>
  Result.try({ try: () => utf8.decode(body), catch: () => new MalformedMessage({ detail: "not UTF-8", field: null }) })

/** What nobody can serve, and why. */
interface Letter {
  readonly body: Frames
  readonly reason: TransportErrorReason
}
const noLetters: ReadonlyArray<Letter> = []

/** What of a frame nobody can serve: of a joined one its bad items alone, unless there are more of them than a frame should have. */
const unreadOf = <Req, Reply>({ items, malformed }: ReplyCall<Req, Reply>, payload: Frames): ReadonlyArray<Letter> => {
  if (malformed !== undefined) return [{ body: payload, reason: malformed }]
  if (items.every(({ request }) => Result.isSuccess(request))) return noLetters
  const letters: Array<Letter> = []
  for (const { request, source } of items) {
    if (Result.isSuccess(request)) continue
    const { reason } = request.failure
    if (letters.length === lettersMax) return [{ body: payload, reason }]
    // What is nested too deeply, or has a name twice, can be read and not be written again.
    const text = source === undefined ? undefined : Result.getOrUndefined(Result.try(() => JSON.stringify(source)))
    letters.push({ body: text === undefined ? payload : [Buffer.from(text)], reason })
  }
  return letters
}

/** Letters that one frame gives at the most. */
const lettersMax = 128

/** After the drain time, how long work that was cut short may take to answer, and the answers to leave. */
const cutMs = 1000

/** Serves a desk until the scope closes, then stops taking requests and finishes what was taken. */
export const serveReplies = <Req, Reply, A, E>(
  desk: ReplyDesk,
  app: ReplyApp<Req, Reply, A, E>,
  options: ReplyServiceOptions
): Effect.Effect<never, never, Scope.Scope> =>
  Effect.gen(function*() {
    const context = yield* Effect.context<never>()
    const outbox = makeOutbox(app.join, Effect.runForkWith(context))
    const workbench = yield* makeWorkbench(app, outbox, options)
    let closing = false

    const refuse = (back: WayBack, text: string) =>
      Effect.andThen(
        Metric.update(ZmqMetrics.refusedRequests, 1),
        Effect.sync(() => outbox.send(back, text, back.ended === undefined ? [] : [back.ended]))
      )
    const refuseAll = (back: WayBack, call: ReplyCall<Req, Reply>, reason: TransportErrorReason) =>
      Effect.suspend(() => refuse(back, refuseCall(app, call, reason)))

    // An answer is not enough: a PUSH peer never sees one, and a REQ peer need not understand it.
    const bury = (principal: string | null, payload: Frames, reason: TransportErrorReason) =>
      Effect.suspend(() => options.bury({
        transport: options.transport,
        principal,
        reason: reason._tag,
        detail: new TransportError({ reason, chargeKey: null }).message,
        body: Buffer.concat([...payload])
      }))

    /** Takes a message, or gives what is to be done instead. */
    const take = (frames: Frames, arrival: Arrival): Effect.Effect<void> | undefined => {
      if (arrival._tag === "Unserved") {
        return Effect.andThen(Metric.update(ZmqMetrics.refusedRequests, 1), bury(null, frames, arrival.reason))
      }
      const { back, payload } = arrival
      const { principal, refused } = senderOf(frames)
      const body = payload.length === 1 ? payload[0] : undefined
      const malformed = (reason: TransportErrorReason) => Effect.andThen(bury(principal, payload, reason), refuse(back, app.refuseUnread(reason)))
      if (body === undefined) return malformed(new MalformedMessage({ detail: "expected one frame of JSON", field: null }))
      if (body.length > options.requestMaxBytes) {
        return malformed(new MalformedMessage({ detail: `${body.length} bytes are more than ${options.requestMaxBytes}`, field: null }))
      }
      const text = decodeText(body)
      if (Result.isFailure(text)) return malformed(text.failure)
      const read = app.read(text.success)
      if (Result.isFailure(read)) return malformed(read.failure)
      const call = read.success
      if (refused !== null) {
        const reason = new Unauthorized({ detail: refused })
        return Effect.all([Metric.update(ZmqMetrics.refusedPeers, 1), bury(principal, payload, reason), refuseAll(back, call, reason)], { discard: true })
      }
      const goOn = (): Effect.Effect<void> | undefined => {
        if (closing) return refuseAll(back, call, new PeerUnreachable({ endpoint: options.label, detail: "the server is closing" }))
        if (workbench.taken() >= options.takenMax) return refuseAll(back, call, new Backpressure({ endpoint: options.label, window: options.takenMax }))
        workbench.take(back, call, principal === null ? context : Context.add(context, Principal, principal))
        return undefined
      }
      const letters = unreadOf(call, payload)
      return letters.length === 0
        ? goOn()
        : Effect.andThen(
          Effect.forEach(letters, ({ body, reason }) => bury(principal, body, reason), { discard: true }),
          Effect.suspend(() => goOn() ?? Effect.void)
        )
    }

    const hear = (open: DirectDesk["open"]) => (batch: ReadonlyArray<Frames>, more: () => void): void => {
      let at = 0
      const goOn = (): void => {
        outbox.hold()
        while (at < batch.length) {
          const frames = batch[at++]!
          const arrival = open(frames)
          const instead = arrival === undefined ? Effect.flatMap(desk.open(frames), (opened) => take(frames, opened) ?? Effect.void) : take(frames, arrival)
          if (instead === undefined) continue
          outbox.flush()
          return void Effect.runForkWith(context)(instead).addObserver(goOn)
        }
        outbox.flush()
        more()
      }
      goOn()
    }

    yield* Effect.addFinalizer(() =>
      Effect.gen(function*() {
        closing = true
        workbench.close()
        if (!(yield* workbench.settle(options.drainMs))) {
          // Without any time of its own, whoever closed it has waited, and says how long.
          const late = options.drainMs === 0 ? "have not ended" : `did not end within ${options.drainMs} ms`
          yield* Effect.logWarning(`${workbench.taken()} requests ${late} and are cut short`)
          workbench.cut()
          yield* workbench.settle(cutMs)
        }
        yield* Effect.timeoutOption(Effect.interruptible(desk.flush), cutMs)
      })
    )
    // It goes on while the finalizer drains, so that late requests are refused instead of left without an answer.
    if (desk.direct !== undefined) desk.direct.listen(hear(desk.direct.open))
    else yield* Queue.takeAll(desk.incoming).pipe(
      Effect.flatMap((batch) => Effect.forEach(batch, (frames) => Effect.flatMap(desk.open(frames), (arrival) => take(frames, arrival) ?? Effect.void), { discard: true })),
      // Those that are ready already leave at once, joined over the frames that came together.
      Effect.andThen(Effect.sync(outbox.flush)),
      Effect.forever,
      Effect.ignore,
      Effect.forkDetach
    )
    return yield* Effect.never
  })
