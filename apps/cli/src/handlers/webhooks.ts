/** `purser webhooks`: the endpoint, and what it has kept. */
import { type Currency, Money, Sightings, WebhookInbox } from "@purser/core"
import { ChargePipeline, WebhookHttp } from "@purser/engine"
import { Database } from "@purser/postgres"
import { PurserWebhooks, Stores, Telemetry } from "@purser/purser"
import { StripeGateway } from "@purser/stripe"
import { Config, Effect, Layer } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { refused } from "../CommandFailed.ts"
import { serving } from "../launch.ts"
import { layerListening } from "../listening.ts"
import { note, out } from "../ui/Output.ts"
import { table } from "../ui/table.ts"

const settings = Config.all({
  host: Config.NonEmptyString("PURSER_WEBHOOK_HOST").pipe(Config.withDefault("127.0.0.1")),
  port: Config.Port("PURSER_WEBHOOK_PORT").pipe(Config.withDefault(4242)),
  path: Config.NonEmptyString("PURSER_WEBHOOK_PATH").pipe(Config.withDefault("/webhooks/stripe"))
})

/** What the flags say; the rest is read from the configuration. */
export interface ServeOptions {
  readonly host: string | undefined
  readonly port: number | undefined
  readonly path: string | undefined
}

const stack = PurserWebhooks.layerServing.pipe(
  Layer.provide(ChargePipeline.layer),
  Layer.provide(StripeGateway.layerConfig),
  Layer.provideMerge(Stores.layerConfig)
)

/** Serves until stopped. */
export const serve = (options: ServeOptions) =>
  Effect.gen(function*() {
    const read = yield* settings
    const host = options.host ?? read.host
    const port = options.port ?? read.port
    const path = options.path ?? read.path
    if (!/^\/[\w\-./]*$/.test(path)) return yield* refused("the path of the endpoint begins with / and has letters, digits, _ - . and / alone")
    return yield* Effect.gen(function*() {
      const database = yield* Database
      const server = yield* HttpServer.HttpServer
      const where = HttpServer.formatAddress(server.address)
      yield* note(`webhooks on ${where}${path}, ledger ${database.label}`)
      if (database.kind === "pglite") yield* note("The embedded database serves this process alone: to share the ledger with other processes, set PURSER_DATABASE_URL.")
      const { handle } = yield* WebhookHttp
      yield* Telemetry.watchStores
      return yield* serving(Effect.andThen(
        Layer.launch(HttpRouter.serve(HttpRouter.add("*", path as `/${string}`, handle), { disableListenLog: true, disableLogger: true })),
        Effect.never
      ))
    }).pipe(Effect.scoped, Effect.provide(Layer.mergeAll(stack, layerListening("purser webhooks", { host, port }))))
  })

/** Prints the newest events. */
export const list = (options: { readonly json: boolean; readonly limit: number }) =>
  Effect.gen(function*() {
    const inbox = yield* WebhookInbox
    const events = yield* inbox.recent(options.limit)
    if (options.json) return yield* out(JSON.stringify({ totals: yield* inbox.totals, events }))
    yield* out(events.length === 0 ? "no events" : table(
      ["event", "type", "object", "deliveries", "verdict", "detail"],
      events.map(({ deliveries, detail, event, verdict }) => [
        event.id, event.type, event.objectId ?? "", String(deliveries), verdict ?? "waiting", detail ?? ""
      ]),
      [3]
    ))
  }).pipe(Effect.provide(Stores.layerConfig))

/** Prints objects that belong to no charge. */
export const unknown = (options: { readonly json: boolean; readonly limit: number }) =>
  Effect.gen(function*() {
    const objects = yield* (yield* Sightings).unknown("", options.limit)
    if (options.json) return yield* out(JSON.stringify(objects))
    yield* out(objects.length === 0 ? "no unknown objects" : table(
      ["object", "why", "status", "amount", "Stripe customer", "detail"],
      objects.map((object) => [
        object.id, object.reason, object.status ?? "",
        object.amountMinor === null ? "" : `${Money.formatMinor(BigInt(object.amountMinor), (object.currency ?? "usd") as Currency)} ${object.currency ?? ""}`,
        object.stripeCustomerId ?? "", object.detail ?? ""
      ]),
      [3]
    ))
  }).pipe(Effect.provide(Stores.layerConfig))

/** Takes an object off the list. */
export const resolve = (options: { readonly id: string; readonly reason: string }) =>
  Effect.gen(function*() {
    if (!(yield* (yield* Sightings).unlist(options.id, options.reason))) return yield* refused(`${options.id} is not on the list`)
  }).pipe(Effect.provide(Stores.layerConfig))
