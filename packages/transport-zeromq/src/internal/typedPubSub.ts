/**
 * Publishing and subscribing for messages of any schema. Each topic's messages are counted by its publisher, so that a
 * subscriber knows how many it missed, which PUB/SUB itself never says. It fetches nothing again: who needs every message
 * uses a feed with a history, as `ZmqEventFeed` is one.
 *
 * A frame costs far more than a message in it. So messages of one topic that are published together are one frame, which
 * bears the number of the first; they stay in the order in which they were published, over all topics.
 */
import { Closed, TransportError, type TransportErrorReason } from "@purser/core"
import { Effect, Queue, Result, type Schema, type Scope, Stream } from "effect"
import { randomUUID } from "node:crypto"
import type { PatternOptions } from "../PatternOptions.ts"
import { type Frames, openZmqSocket } from "../ZmqSocket.ts"
import { loadZeromq } from "./native.ts"
import { labelOf, readEndpoints, settingsOf } from "./patternOptions.ts"
import { jsonReader } from "./plainRecord.ts"
import { isRecord, jsonWriter, parseJson } from "./typedWire.ts"
import { joinChars } from "./windowClient.ts"

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
  /**
   * Publishes to whoever is subscribed now; it waits for nobody, and what is published within one turn of the event loop shares
   * frames. A message that the schema refuses is `MalformedMessage`.
   */
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

/** Messages of one topic that share a frame at the most. */
const joinMax = 128

/** Published, and not with the socket yet: messages of one topic, numbered in a row, or all without a number. */
interface Joined {
  readonly topic: string
  /** The first one's number. */
  readonly n: number | null
  /** Their texts, with commas between. */
  text: string
  count: number
}

const isUncounted = (n: unknown): n is null => n === null

/** One message as it came, or why none can be read. */
type Came =
  | { readonly topic: string; readonly epoch: string; readonly n: number | null; readonly body: unknown }
  | { readonly topic: string; readonly detail: string }

/** The messages of a frame. */
const readFrame = ([first, second]: Frames): ReadonlyArray<Came> => {
  const topic = first?.toString("utf8") ?? ""
  const json = parseJson(second?.toString("utf8") ?? "")
  if (Result.isFailure(json)) return [{ topic, detail: json.failure.detail }]
  const envelope = isRecord(json.success) ? json.success : {}
  const { body, bodies, epoch, n, v } = envelope
  const some: ReadonlyArray<unknown> = Array.isArray(bodies) ? bodies : "body" in envelope ? [body] : []
  if (v !== 1 || typeof epoch !== "string" || some.length === 0 || !isUncounted(n) && !Number.isSafeInteger(n)) {
    return [{ topic, detail: "expected messages in an envelope of version 1" }]
  }
  return some.map((one, index) => ({ topic, epoch, n: isUncounted(n) ? n : Number(n) + index, body: one }))
}

/** Opens a publisher until the scope closes. It binds, unless `>` stands in front of its address. */
export const openPublisher = Effect.fnUntraced(function*<A>(options: TypedPubSubOptions<A>): Effect.fn.Return<TypedPublisher<A>, TransportError, Scope.Scope> {
  const endpoints = yield* readEndpoints(options, "bind")
  const settings = settingsOf(options)
  const label = labelOf(endpoints)
  const write = jsonWriter(options.schema)
  const epoch = randomUUID()
  const counts = new Map<string, number>()
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const socket = yield* openZmqSocket(yield* loadZeromq, { kind: "publisher", endpoints, settings, sendTimeoutMs: 0, lingerMs: settings.lingerMs })
  const refused = (reason: TransportErrorReason) => Effect.fail(new TransportError({ reason, chargeKey: null }))
  let closed = false
  let pending: Joined | undefined
  let scheduled = false

  // A publisher waits for nobody, so that its socket takes everything.
  const posted = (error: TransportError | undefined) => {
    if (error !== undefined) run(Effect.logWarning("messages were not published", error.message))
  }
  const flush = () => {
    if (pending === undefined) return
    const { count, n, text, topic } = pending
    pending = undefined
    socket.post([topic, `{"v":1,"epoch":"${epoch}","n":${n},${count === 1 ? `"body":${text}` : `"bodies":[${text}]`}}`], posted)
  }
  const add = (topic: string, n: number | null, text: string) => {
    const fits = pending !== undefined && pending.topic === topic && isUncounted(pending.n) === isUncounted(n) && pending.count < joinMax && pending.text.length + text.length <= joinChars
    if (pending !== undefined && fits) {
      pending.text += `,${text}`
      pending.count++
    } else {
      // Topics keep their order among each other.
      flush()
      pending = { topic, n, text, count: 1 }
    }
    if (scheduled) return
    scheduled = true
    run(Effect.andThen(Effect.yieldNow, Effect.sync(() => {
      scheduled = false
      flush()
    })))
  }
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      closed = true
      flush()
      return socket.flush
    }))
  return {
    bound: socket.bound,
    publish: (topic, message) =>
      Effect.suspend(() => {
        if (closed) return refused(new Closed({ endpoint: label, detail: "the publisher has been closed" }))
        const body = write(message)
        if (Result.isFailure(body)) return refused(body.failure)
        const last = counts.get(topic)
        const n = last !== undefined || counts.size < countedMax ? (last ?? 0) + 1 : null
        if (n !== null) counts.set(topic, n)
        add(topic, n, body.success)
        return Effect.void
      })
  }
})

/** Subscribes as long as the stream is run. It connects, unless `@` stands in front of its address. */
export const subscription = <A>(options: SubscriptionOptions<A>): Stream.Stream<Received<A>, TransportError> =>
  Stream.unwrap(Effect.gen(function*() {
    const endpoints = yield* readEndpoints(options, "connect")
    const settings = settingsOf(options)
    const decode = jsonReader(options.schema)
    const known = new Map<string, { epoch: string; n: number }>()
    // The reader of the socket never waits for the reader of the stream: without one it would not subscribe again.
    const waiting = yield* Queue.sliding<Came>(Math.max(1, options.bufferMax ?? 10_000))
    yield* Effect.addFinalizer(() => Queue.shutdown(waiting))
    yield* openZmqSocket(yield* loadZeromq, {
      kind: "subscriber",
      endpoints,
      settings,
      sendTimeoutMs: 0,
      lingerMs: 0,
      topics: options.topics,
      hear: (batch, more) => {
        for (const frames of batch) Queue.offerAllUnsafe(waiting, readFrame(frames))
        more()
      }
    })

    const read = (came: Came, into: Array<Received<A>>): void => {
      const { topic } = came
      if ("detail" in came) return void into.push({ _tag: "Unreadable", topic, detail: came.detail })
      const { body, epoch, n } = came
      if (n !== null) {
        const last = known.get(topic)
        if (last === undefined) {
          if (known.size < countedMax) known.set(topic, { epoch, n })
        } else {
          if (last.epoch !== epoch) into.push({ _tag: "Missed", topic, count: null })
          else if (n > last.n + 1) into.push({ _tag: "Missed", topic, count: n - last.n - 1 })
          last.epoch = epoch
          last.n = n
        }
      }
      const message = decode(body)
      into.push(Result.isSuccess(message) ? { _tag: "Message", topic, message: message.success } : { _tag: "Unreadable", topic, detail: message.failure.message })
    }
    return Stream.fromQueue(waiting).pipe(Stream.mapArray((all) => {
      const received: Array<Received<A>> = []
      for (const came of all) read(came, received)
      return received as [Received<A>, ...Array<Received<A>>]
    }))
  }))
