/** The flags of `purser feed`, which publishes the ledger's events, and of `purser events`, which shows them. */
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { inTelemetry } from "./inTelemetry.ts"

const endpoint = (what: string) =>
  Flag.String("endpoint").pipe(Flag.withDescription(`Where ${what} (default: PURSER_FEED_ENDPOINT, else tcp://127.0.0.1:5565)`), Flag.optional)
const replayEndpoint = (what: string) =>
  Flag.String("replay-endpoint").pipe(Flag.withDescription(`Where ${what} (default: PURSER_FEED_REPLAY_ENDPOINT, else tcp://127.0.0.1:5566)`), Flag.optional)

/** `purser feed` */
export const feedCommand = Command.make("feed", {
  endpoint: endpoint("to publish"),
  replayEndpoint: replayEndpoint("history is asked for"),
  keep: Flag.Int("keep").pipe(
    Flag.withDescription("Events that can be replayed; older ones are trimmed from the feed, never from the ledger (default: PURSER_FEED_KEEP, else all)"),
    Flag.optional
  )
}, Effect.fnUntraced(function*(given) {
  const { feed } = yield* Effect.promise(() => import("../handlers/feed.ts"))
  return yield* inTelemetry("feed", feed({
    endpoint: Option.getOrUndefined(given.endpoint),
    replayEndpoint: Option.getOrUndefined(given.replayEndpoint),
    keep: Option.getOrUndefined(given.keep)
  }))
})).pipe(
  Command.withDescription("Publish the ledger's events to whoever follows them, until stopped"),
  Command.withExamples([{ command: "PURSER_DATABASE_URL=postgres://… purser feed", description: "Publish; any number of readers follow with purser events" }])
)

/** `purser events` */
export const eventsCommand = Command.make("events", {
  endpoint: endpoint("a publisher is"),
  replayEndpoint: replayEndpoint("its history is"),
  local: Flag.Boolean("local").pipe(Flag.withDescription("Read this process's own database instead of a publisher"), Flag.withDefault(false)),
  from: Flag.Literals("from", ["snapshot", "beginning", "now"]).pipe(
    Flag.withDescription("Begin with how every charge stands, with the whole history, or with what happens next"),
    Flag.withDefault("snapshot" as const)
  ),
  after: Flag.Int("after").pipe(Flag.withDescription("Begin after the event of this place instead"), Flag.optional),
  epoch: Flag.String("epoch").pipe(Flag.withDescription("With --after: the epoch that named the place, so that another history is noticed"), Flag.optional),
  event: Flag.String("event").pipe(
    Flag.withDescription("With --after: the event of that place, as --json printed it; tells another history also where the epoch began before it"),
    Flag.optional
  ),
  once: Flag.Boolean("once").pipe(Flag.withDescription("End when everything up to now was shown"), Flag.withDefault(false)),
  restart: Flag.Boolean("restart").pipe(Flag.withDescription("When events were trimmed, begin anew with a snapshot instead of failing"), Flag.withDefault(false)),
  json: Flag.Boolean("json").pipe(Flag.withDescription("Print one JSON object a line"), Flag.withDefault(false))
}, Effect.fnUntraced(function*(given) {
  const { events } = yield* Effect.promise(() => import("../handlers/events.ts"))
  return yield* events({
    ...given,
    endpoint: Option.getOrUndefined(given.endpoint),
    replayEndpoint: Option.getOrUndefined(given.replayEndpoint),
    after: Option.getOrUndefined(given.after),
    epoch: Option.getOrUndefined(given.epoch),
    event: Option.getOrUndefined(given.event)
  })
})).pipe(
  Command.withDescription("Show what happens to charges: each event once, in order"),
  Command.withExamples([
    { command: "purser events --json --after 1200 --epoch 5f0c…", description: "Go on after a stored place" },
    { command: "purser events --local --from beginning --once", description: "Print the whole history of the own database" }
  ])
)
