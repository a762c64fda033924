/**
 * What moves, as pulses for everybody who looks: one reader of the event feed for the process, however many pages are open,
 * and none while no page is.
 */
import { answeredWithin, Attention, ChargePause, EventFeed, type FeedNotice } from "@purser/core"
import { Clock, Context, Deferred, Duration, Effect, Layer, Metric, Stream } from "effect"
import { Away } from "./api/ConsoleError.ts"
import type { Pulse } from "./api/Shapes.ts"
import { ConsoleMetrics } from "./ConsoleMetrics.ts"

/** Events of so long make one pulse. */
const gather = Duration.millis(500)
/** Without events there is a pulse now and then all the same: it says that the console lives, and brings what no event tells. */
const rest = Duration.seconds(3)
/** What waits is counted by then, or the ledger is away: said before a page that hears nothing takes the console itself for gone. */
const patience = Duration.seconds(5)
const eventsMax = 20_000
/** What waits is counted up to here. */
export const countsMax = 1000

const awayFrom = (error: { readonly message: string }) => new Away({ message: error.message })

type Beat = ReadonlyArray<FeedNotice>

/** The pulses. */
export class LiveFeed extends Context.Service<LiveFeed, {
  /** Begins with how things stand; ends when the server does, and not before. */
  readonly pulses: Stream.Stream<Pulse, Away>
  /** Ends it for all who follow, so that a server which closes does not wait for them. */
  readonly end: Effect.Effect<void>
}>()("@purser/console/LiveFeed") {
  /** Over the event feed, the switch and what waits. */
  static readonly layer: Layer.Layer<LiveFeed, never, EventFeed | ChargePause | Attention> = Layer.effect(
    LiveFeed,
    Effect.gen(function*() {
      const feed = yield* EventFeed
      const pause = yield* ChargePause
      const attention = yield* Attention
      const counted = Effect.flatMap(answeredWithin(Effect.mapError(attention.counts(countsMax), awayFrom), patience), (found) =>
        found === undefined ? Effect.fail(new Away({ message: `the ledger has not answered within ${Duration.format(patience)}` })) : Effect.succeed(found))
      const counts = yield* Effect.cachedWithTTL(counted, Duration.seconds(2))
      let sequence = 0
      const pulseOf = Effect.fnUntraced(function*(notices: Beat) {
        const moved: Record<string, number> = {}
        for (const notice of notices) {
          if (notice._tag === "Synced") sequence = notice.cursor.sequence
          if (notice._tag !== "Event") continue
          sequence = notice.event.sequence
          moved[notice.event.to] = (moved[notice.event.to] ?? 0) + 1
        }
        const pulse: Pulse = { sequence, atMs: yield* Clock.currentTimeMillis, moved, pauses: yield* pause.view, counts: yield* counts }
        return pulse
      })
      const events: Stream.Stream<Beat, Away> = feed.follow({ _tag: "Now" }).pipe(
        Stream.groupedWithin(eventsMax, gather),
        Stream.mapError(awayFrom)
      )
      const quiet: Stream.Stream<Beat> = Stream.map(Stream.tick(rest), (): Beat => [])
      const pulses = yield* Stream.merge(events, quiet).pipe(
        Stream.mapEffect(pulseOf),
        Stream.share({ capacity: 16, strategy: "sliding", replay: 1 })
      )
      const ended = yield* Deferred.make<void>()
      const watching = Effect.acquireRelease(Metric.modify(ConsoleMetrics.watchers, 1), () => Metric.modify(ConsoleMetrics.watchers, -1))
      return LiveFeed.of({
        pulses: Stream.unwrap(Effect.as(watching, Stream.interruptWhen(pulses, Deferred.await(ended)))),
        end: Effect.asVoid(Deferred.succeed(ended, undefined))
      })
    })
  )
}
