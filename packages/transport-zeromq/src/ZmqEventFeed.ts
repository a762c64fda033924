/**
 * The charge event feed over ZeroMQ, after 12/CHP (Clone): a PUB socket for what happens, a ROUTER for what has happened.
 *
 * The publisher reads the event log and writes nothing but places into it; any number of subscribers follow. PUB drops
 * what a subscriber cannot take, so that the promise is made by places instead: a subscriber that misses one fetches it.
 */
import { EventFeed, type EventLog, type FeedError, type FeedNotice, type FeedStart, type TransportError } from "@purser/core"
import { Array as Arr, Config, Effect, Layer, Option, Schema, type Scope, Stream } from "effect"
import { curveConfig } from "./CurveSettings.ts"
import { defaultFeedEndpoint, defaultReplayEndpoint, type FeedPublisherOptions, type FeedSubscriberOptions } from "./FeedOptions.ts"
import { makeAskPage } from "./internal/feedAsk.ts"
import { makeFollow } from "./internal/feedFollow.ts"
import { listenLive } from "./internal/feedLive.ts"
import { type FeedPublisher, makeFeedPublisher } from "./internal/feedPublisher.ts"
import { loadZeromq } from "./internal/native.ts"
import { millis, readEndpoints, settingsOf } from "./internal/patternOptions.ts"

export type { FeedPublisher }

/** Publishes the log of this process until the scope closes. */
const publish: (options?: FeedPublisherOptions) => Effect.Effect<FeedPublisher, FeedError | TransportError, EventLog | Scope.Scope> = (options = {}) =>
  makeFeedPublisher(options)

/** Follows a publisher. The sockets live as long as the stream is run. */
const follow = (start: FeedStart, options: FeedSubscriberOptions = {}): Stream.Stream<FeedNotice, FeedError | TransportError> =>
  Stream.unwrap(Effect.gen(function*() {
    const zmq = yield* loadZeromq
    const settings = settingsOf(options)
    const endpoints = yield* readEndpoints({ ...options, endpoint: options.endpoint ?? defaultFeedEndpoint }, "connect")
    const replayEndpoints = yield* readEndpoints({ ...options, endpoint: options.replayEndpoint ?? defaultReplayEndpoint }, "connect")
    const bufferMax = Math.max(1, options.bufferMax ?? 10_000)
    // Listening begins before the first page is asked for, so that nothing happens between the two.
    const live = yield* listenLive({ zmq, endpoints, settings, bufferMax })
    const ask = yield* makeAskPage({ zmq, endpoints: replayEndpoints, settings, timeoutMs: millis(options.replayTimeout ?? "5 seconds") })
    const step = makeFollow({
      live,
      ask,
      start,
      bufferMax,
      pageMax: Math.min(10_000, Math.max(1, options.pageMax ?? 1000)),
      silentMs: Math.max(1, millis(options.silentAfter ?? "3 seconds")),
      whenSlow: options.whenSlow ?? "catch-up",
      whenGap: options.whenGap ?? "fail"
    })
    const next: typeof step = Effect.flatMap(step, (notices) => notices.length === 0 ? next : Effect.succeed(notices))
    return Stream.fromEffectRepeat(next).pipe(Stream.filter(Arr.isReadonlyArrayNonEmpty), Stream.flattenArray)
  }))

const whole = (name: string) => Config.option(Config.schema(Schema.FiniteFromString.check(Schema.isInt(), Schema.isGreaterThanOrEqualTo(1)), name))

const settings = Config.all({
  endpoint: Config.String("PURSER_FEED_ENDPOINT").pipe(Config.withDefault(defaultFeedEndpoint)),
  replayEndpoint: Config.String("PURSER_FEED_REPLAY_ENDPOINT").pipe(Config.withDefault(defaultReplayEndpoint)),
  allowPlain: Config.Boolean("PURSER_ALLOW_PLAIN").pipe(Config.withDefault(false)),
  poll: Config.Duration("PURSER_FEED_POLL").pipe(Config.withDefault("200 millis")),
  keep: Config.map(whole("PURSER_FEED_KEEP"), Option.getOrUndefined),
  bufferMax: Config.map(whole("PURSER_FEED_BUFFER"), Option.getOrUndefined),
  pageMax: Config.map(whole("PURSER_FEED_PAGE"), Option.getOrUndefined)
})

/** The settings of both sides from the configuration, CURVE's among them; those given go before. */
const configured = (given: FeedPublisherOptions & FeedSubscriberOptions): Effect.Effect<FeedPublisherOptions & FeedSubscriberOptions, TransportError | Config.ConfigError, Scope.Scope> =>
  Effect.gen(function*() {
    const all = yield* settings
    const curve = yield* curveConfig
    return { ...all, socket: { curve }, ...given }
  })

/** Publishing and following, and the follower as the layer of the contract. */
export const ZmqEventFeed = {
  publish,
  /** With `PURSER_FEED_…` and CURVE's keys from the configuration. */
  publishFromConfig: (options: FeedPublisherOptions = {}): Effect.Effect<FeedPublisher, FeedError | TransportError | Config.ConfigError, EventLog | Scope.Scope> =>
    Effect.flatMap(configured(options), publish),
  follow,
  /** The feed of a publisher elsewhere. */
  layer: (options: FeedSubscriberOptions = {}): Layer.Layer<EventFeed> =>
    Layer.succeed(EventFeed, EventFeed.of({ follow: (start) => follow(start, options) })),
  /** The same with `PURSER_FEED_…` and CURVE's keys from the configuration. */
  layerConfig: (options: FeedSubscriberOptions = {}): Layer.Layer<EventFeed, TransportError | Config.ConfigError> =>
    Layer.effect(EventFeed, Effect.map(configured(options), (all) => EventFeed.of({ follow: (start) => follow(start, all) })))
} as const
