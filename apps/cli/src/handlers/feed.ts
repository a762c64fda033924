/** `purser feed`: publishes the ledger's events until stopped. */
import { Database } from "@purser/postgres"
import { Stores } from "@purser/purser"
import { type FeedPublisherOptions, ZmqEventFeed } from "@purser/transport-zeromq"
import { Effect } from "effect"
import { serving } from "../launch.ts"
import { note } from "../ui/Output.ts"

/** Publishes the events of the ledger at hand until the scope closes; options go before the configuration. */
export const publishFeed = Effect.fnUntraced(function*(options: FeedPublisherOptions) {
  const database = yield* Database
  const { bound, epoch, published } = yield* ZmqEventFeed.publishFromConfig(options)
  yield* note(`publishing the events of ${database.label} on ${bound.events.join(",")}, history on ${bound.replay.join(",")}; epoch ${epoch}, after ${yield* published}`)
})

/** Publishes the events of the configured ledger. */
export const feed = (options: { readonly endpoint: string | undefined; readonly replayEndpoint: string | undefined; readonly keep: number | undefined }) =>
  Effect.gen(function*() {
    yield* publishFeed({
      ...(options.endpoint === undefined ? {} : { endpoint: options.endpoint }),
      ...(options.replayEndpoint === undefined ? {} : { replayEndpoint: options.replayEndpoint }),
      ...(options.keep === undefined ? {} : { keep: options.keep })
    })
    return yield* serving(Effect.never)
  }).pipe(Effect.scoped, Effect.provide(Stores.layerConfig))
