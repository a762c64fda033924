/**
 * Publishing and subscribing for messages of any schema. Each topic's messages are counted by its publisher, so that a
 * subscriber knows how many it missed, which PUB/SUB itself never says. It fetches nothing again: who needs every message
 * uses a feed with a history, as `ZmqEventFeed` is one.
 */
import { MalformedMessage, TransportError } from "@purser/core"
import { Effect, Queue, Result, Schema, type Scope, Stream } from "effect"
import { randomUUID } from "node:crypto"
import type { PatternOptions } from "../PatternOptions.ts"
import { type Frames, openZmqSocket } from "../ZmqSocket.ts"
import { loadZeromq } from "./native.ts"
import { readEndpoints, settingsOf } from "./patternOptions.ts"

/** Schemas whose codecs need no services. */
export type MessageSchema<A> = Schema.Codec<A, unknown>

/** Where to publish or subscribe, and what the messages are. */
export interface TypedPubSubOptions<A> extends Pick<PatternOptions, "endpoint" | "allowPlain" | "socket"> {
  readonly schema: MessageSchema<A>
}

/** What a subscriber takes. */
export interface SubscriptionOptions<A> extends TypedPubSubOptions<A> {
  /** How topics begin that are wanted; all by default. */
  readonly topics?: ReadonlyArray<string> | undefined
  /** Messages that wait for a slow reader (10,000); beyond that the oldest are dropped, and told as missed. */
  readonly bufferMax?: number | undefined
}

/** A publisher that is up. */
export interface TypedPublisher<A> {
  /** Publishes to whoever is subscribed now; it waits for nobody. A message that the schema refuses is `MalformedMessage`. */
  readonly publish: (topic: string, message: A) => Effect.Effect<void, TransportError>
  /** The addresses that were bound. */
  readonly bound: ReadonlyArray<string>
}

/**
 * What a subscriber gets: a message; how many of a topic were missed before the next one, null when the publisher began
 * anew in between and nobody knows; or a message that cannot be read.
 */
export type Received<A> =
  | { readonly _tag: "Message"; readonly topic: string; readonly message: A }
  | { readonly _tag: "Missed"; readonly topic: string; readonly count: number | null }
  | { readonly _tag: "Unreadable"; readonly topic: string; readonly detail: string }

/** Topics that are counted at the most; messages of more topics go uncounted. */
const countedMax = 10_000

const Envelope = Schema.fromJsonString(Schema.Struct({ v: Schema.Literal(1), epoch: Schema.String, n: Schema.NullOr(Schema.Int), body: Schema.Unknown }))
const decodeEnvelope = Schema.decodeUnknownResult(Envelope)

/** Opens a publisher until the scope closes. It binds, unless `>` stands in front of its address. */
export const openPublisher = Effect.fnUntraced(function*<A>(options: TypedPubSubOptions<A>): Effect.fn.Return<TypedPublisher<A>, TransportError, Scope.Scope> {
  const endpoints = yield* readEndpoints(options, "bind")
  const settings = settingsOf(options)
  const encode = Schema.encodeUnknownResult(options.schema)
  const epoch = randomUUID()
  const counts = new Map<string, number>()
  const socket = yield* openZmqSocket(yield* loadZeromq, { kind: "publisher", endpoints, settings, sendTimeoutMs: 0, lingerMs: settings.lingerMs })
  return {
    bound: socket.bound,
    publish: (topic, message) =>
      Effect.suspend(() => {
        const body = encode(message)
        if (Result.isFailure(body)) {
          return Effect.fail(new TransportError({ reason: new MalformedMessage({ detail: body.failure.message, field: null }), chargeKey: null }))
        }
        const last = counts.get(topic)
        const n = last !== undefined || counts.size < countedMax ? (last ?? 0) + 1 : null
        if (n !== null) counts.set(topic, n)
        return socket.send([topic, JSON.stringify({ v: 1, epoch, n, body: body.success })])
      })
  }
})

/** Subscribes as long as the stream is run. It connects, unless `@` stands in front of its address. */
export const subscription = <A>(options: SubscriptionOptions<A>): Stream.Stream<Received<A>, TransportError> =>
  Stream.unwrap(Effect.gen(function*() {
    const endpoints = yield* readEndpoints(options, "connect")
    const settings = settingsOf(options)
    const decode = Schema.decodeUnknownResult(options.schema)
    const known = new Map<string, { readonly epoch: string; readonly n: number }>()
    const socket = yield* openZmqSocket(yield* loadZeromq, {
      kind: "subscriber",
      endpoints,
      settings,
      sendTimeoutMs: 0,
      lingerMs: 0,
      topics: options.topics
    })
    // The reader of the socket never waits for the reader of the stream: without one it would not subscribe again.
    const waiting = yield* Queue.sliding<Frames>(Math.max(1, options.bufferMax ?? 10_000))
    yield* Queue.takeAll(socket.incoming).pipe(
      Effect.flatMap((batch) => Queue.offerAll(waiting, batch)),
      Effect.forever,
      Effect.exit,
      Effect.andThen(Queue.shutdown(waiting)),
      Effect.forkScoped
    )

    const read = ([first, second]: Frames): ReadonlyArray<Received<A>> => {
      const topic = first?.toString("utf8") ?? ""
      const envelope = decodeEnvelope(second?.toString("utf8"))
      if (Result.isFailure(envelope)) return [{ _tag: "Unreadable", topic, detail: envelope.failure.message }]
      const { body, epoch, n } = envelope.success
      const before = known.get(topic)
      if (n !== null && (before !== undefined || known.size < countedMax)) known.set(topic, { epoch, n })
      const missed: ReadonlyArray<Received<A>> = n === null || before === undefined
        ? []
        : before.epoch !== epoch
        ? [{ _tag: "Missed", topic, count: null }]
        : n > before.n + 1
        ? [{ _tag: "Missed", topic, count: n - before.n - 1 }]
        : []
      const message = decode(body)
      return [
        ...missed,
        Result.isSuccess(message) ? { _tag: "Message", topic, message: message.success } : { _tag: "Unreadable", topic, detail: message.failure.message }
      ]
    }
    return Stream.fromQueue(waiting).pipe(Stream.map(read), Stream.flattenIterable)
  }))
