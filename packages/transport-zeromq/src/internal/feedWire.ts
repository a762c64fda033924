/**
 * The messages of the feed: a verb of 12/CHP in the first frame, so that it is also the topic, and JSON in the second.
 *
 * `KVPUB` and `HUGZ` go to all subscribers. `ICANHAZ?` asks for a page of history or of a snapshot, and is answered by any
 * number of `KVSYNC` and one `KTHXBAI`, or by `ERROR`, which 12/CHP does not have. Each answer names its request.
 */
import { ChargeKey, FeedError, FeedEvent, FeedMark } from "@purser/core"
import { Result, Schema } from "effect"
import type { Frames } from "../ZmqSocket.ts"

/** First frames. */
export const verbs = { event: "KVPUB", alive: "HUGZ", ask: "ICANHAZ?", sync: "KVSYNC", done: "KTHXBAI", error: "ERROR" } as const

const v = Schema.Literal(1)
const Id = Schema.String.pipe(Schema.check(Schema.isNonEmpty(), Schema.isMaxLength(100)))
const Place = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** New events, the first of them right after `after`. */
export const Published = Schema.Struct({ v, epoch: Id, after: Place, events: Schema.Array(FeedEvent) })
/** Nothing new after `sequence`. */
export const Alive = Schema.Struct({ v, epoch: Id, sequence: Place })
/** What is wanted: events after a cursor, which may say what stands at its place; charges of a snapshot, at the present place when `at` is null; or only the present place. */
export const Want = Schema.Union([
  Schema.Struct({ after: Schema.Struct({ epoch: Schema.NullOr(Id), sequence: Place, event: Schema.optional(FeedMark) }) }),
  Schema.Struct({ snapshot: Schema.Struct({ at: Schema.NullOr(Place), key: Schema.NullOr(ChargeKey) }) }),
  Schema.Struct({ head: Schema.Literal(true) })
])
export type Want = typeof Want.Type
/** A request for a page of at most `limit`. */
export const Ask = Schema.Struct({ v, id: Id, limit: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 10_000 })), want: Want })
/** Part of a page. */
export const Sync = Schema.Struct({ v, id: Id, events: Schema.Array(FeedEvent) })
/** The end of a page. `sequence`: what the publisher has published, or the snapshot's place. `next`: where a snapshot goes on. `event`: what stands at `sequence`, with the head and the first page of a snapshot; publishers of before do not say it. */
export const Done = Schema.Struct({ v, id: Id, epoch: Id, sequence: Place, event: Schema.optional(FeedMark), next: Schema.NullOr(ChargeKey) })
/** Why there is no page. */
export const Failed = Schema.Struct({ v, id: Id, error: FeedError })

/** One answer to a request. */
export type Answer =
  | { readonly verb: "KVSYNC"; readonly body: typeof Sync.Type }
  | { readonly verb: "KTHXBAI"; readonly body: typeof Done.Type }
  | { readonly verb: "ERROR"; readonly body: typeof Failed.Type }

/** One broadcast. */
export type Broadcast =
  | { readonly verb: "KVPUB"; readonly body: typeof Published.Type }
  | { readonly verb: "HUGZ"; readonly body: typeof Alive.Type }

const reader = <S extends Schema.Top & { readonly DecodingServices: never }>(schema: S) => {
  const decode = Schema.decodeUnknownResult(Schema.fromJsonString(schema))
  return (frame: Frames[number] | undefined): S["Type"] | undefined => frame === undefined ? undefined : Result.getOrUndefined(decode(frame.toString("utf8")))
}
const readPublished = reader(Published)
const readAlive = reader(Alive)
const readSync = reader(Sync)
const readDone = reader(Done)
const readFailed = reader(Failed)

/** Reads a request; undefined for what is none. */
export const readAsk = reader(Ask)

/** Reads a broadcast; undefined for what is none. */
export const readBroadcast = ([verb, body]: Frames): Broadcast | undefined => {
  switch (verb?.toString("latin1")) {
    case verbs.event: {
      const read = readPublished(body)
      return read && { verb: verbs.event, body: read }
    }
    case verbs.alive: {
      const read = readAlive(body)
      return read && { verb: verbs.alive, body: read }
    }
  }
  return undefined
}

/** Reads an answer; undefined for what is none. */
export const readAnswer = ([verb, body]: Frames): Answer | undefined => {
  switch (verb?.toString("latin1")) {
    case verbs.sync: {
      const read = readSync(body)
      return read && { verb: verbs.sync, body: read }
    }
    case verbs.done: {
      const read = readDone(body)
      return read && { verb: verbs.done, body: read }
    }
    case verbs.error: {
      const read = readFailed(body)
      return read && { verb: verbs.error, body: read }
    }
  }
  return undefined
}

const encodeFailed = Schema.encodeSync(Failed)

/** The frames of a message. */
export const write = (message: Answer | Broadcast | { readonly verb: "ICANHAZ?"; readonly body: typeof Ask.Type }): [string, string] => [
  message.verb,
  JSON.stringify(message.verb === "ERROR" ? encodeFailed(message.body) : message.body)
]

/** Cuts events into messages of a bounded size. */
export const inFrames = (events: ReadonlyArray<FeedEvent>, max = 64): ReadonlyArray<ReadonlyArray<FeedEvent>> =>
  Array.from({ length: Math.ceil(events.length / max) }, (_, index) => events.slice(index * max, (index + 1) * max))
