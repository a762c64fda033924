/** `purser events`: shows the charge event feed, from a publisher or from the own database. */
import { type Currency, EventFeed, type FeedEvent, FeedMark, type FeedNotice, type FeedStart, Money } from "@purser/core"
import { ChargeEventFeed } from "@purser/engine"
import { Stores } from "@purser/purser"
import { ZmqEventFeed } from "@purser/transport-zeromq"
import { DateTime, Effect, Layer, Schema, Stream } from "effect"
import { refused } from "../CommandFailed.ts"
import { serving } from "../launch.ts"
import { note, out } from "../ui/Output.ts"

/** What `purser events` takes. */
export interface EventsOptions {
  readonly endpoint: string | undefined
  readonly replayEndpoint: string | undefined
  readonly local: boolean
  readonly from: "snapshot" | "beginning" | "now"
  readonly after: number | undefined
  readonly epoch: string | undefined
  readonly event: string | undefined
  readonly once: boolean
  readonly restart: boolean
  readonly json: boolean
}

/** What `--event` says; the rest of an event is left out. */
const markOf = (text: string) =>
  Effect.mapError(Schema.decodeUnknownEffect(Schema.fromJsonString(FeedMark))(text), () => refused("--event takes the JSON of an event, with its chargeKey, chargeSequence and atMs"))

const startOf = Effect.fnUntraced(function*({ after, epoch, event, from }: EventsOptions) {
  const start: FeedStart = after !== undefined
    ? { _tag: "After", cursor: { epoch: epoch ?? null, sequence: after, ...(event === undefined ? {} : { event: yield* markOf(event) }) } }
    : { _tag: from === "snapshot" ? "Snapshot" : from === "beginning" ? "Beginning" : "Now" }
  return start
})

const line = (event: FeedEvent): string => {
  const who = `${event.customerId} ${event.billingPeriod}${event.item === null ? "" : ` ${event.item}`}`
  const amount = `${Money.formatMinor(BigInt(event.amountMinor), event.currency as Currency)} ${event.currency}`
  const change = event.from === null || event.from === event.to ? event.to : `${event.from} → ${event.to}`
  return [
    `#${event.sequence}`, DateTime.formatIso(DateTime.makeUnsafe(event.atMs)), who, amount, change,
    ...(event.worker === null ? [] : [event.worker]), ...(event.principal === null ? [] : [`asked by ${event.principal}`]), ...(event.detail === null ? [] : [event.detail])
  ].join("  ")
}

/** A line about the feed itself; undefined for what is no news to a person. */
const about = (notice: FeedNotice): string | undefined => {
  switch (notice._tag) {
    case "Synced":
      return `up to date at #${notice.cursor.sequence}${notice.cursor.epoch === null ? "" : ` of epoch ${notice.cursor.epoch}`}`
    case "Epoch":
      return `the publisher was restarted; its epoch is ${notice.epoch}`
    case "Lagged":
      return `${notice.reason === "lost" ? "lost on the way" : "too slow"}: #${notice.after + 1} to #${notice.to} are fetched`
    case "Restarted":
      return `the events after #${notice.after} are gone; a snapshot follows`
    case "Silent":
      return `nothing was heard of the publisher for ${Math.round(notice.silentMs / 1000)} s`
    default:
      return undefined
  }
}

const show = (notice: FeedNotice, json: boolean): Effect.Effect<void> => {
  if (json) return out(JSON.stringify(notice))
  if (notice._tag === "Event" || notice._tag === "State") return out(line(notice.event))
  const text = about(notice)
  return text === undefined ? Effect.void : note(text)
}

const local = ChargeEventFeed.layer.pipe(Layer.provide(Stores.layerConfig))

const remote = (options: EventsOptions) =>
  ZmqEventFeed.layerConfig({
    ...(options.endpoint === undefined ? {} : { endpoint: options.endpoint }),
    ...(options.replayEndpoint === undefined ? {} : { replayEndpoint: options.replayEndpoint }),
    whenGap: options.restart ? "snapshot" : "fail"
  })

/** A page is asked for three times meanwhile. */
const patience = "15 seconds"

/** Up to where everything is told. Who asked for that alone does not wait for a publisher that is not there, or lets nobody in. */
export const upToNow = <E, R>(notices: Stream.Stream<FeedNotice, E, R>) =>
  notices.pipe(
    Stream.filter(({ _tag }) => _tag !== "Silent"),
    Stream.timeoutOrElse({
      duration: patience,
      orElse: () => Stream.fail(refused(`no publisher of the feed has answered for ${patience}: is it there (--endpoint, --replay-endpoint), and does it let this key in?`))
    }),
    Stream.takeUntil(({ _tag }) => _tag === "Synced")
  )

/** Shows notices until stopped, or until all is shown. */
export const events = (options: EventsOptions) => {
  const feed: Layer.Layer<EventFeed, Layer.Error<typeof local> | Layer.Error<ReturnType<typeof remote>>> = options.local ? local : remote(options)
  return Effect.gen(function*() {
    const { follow } = yield* EventFeed
    const shown = Stream.tap(follow(yield* startOf(options)), (notice) => show(notice, options.json))
    return yield* options.once ? Stream.runDrain(upToNow(shown)) : serving(Stream.runDrain(shown))
  }).pipe(Effect.provide(feed))
}
