/** A console over a database of its own and the simulator, answering without a socket. */
import { BillingPeriod, chargeKeyOf, Currency, SpendCap } from "@purser/core"
import { ChargePipeline } from "@purser/engine"
import { postgresUrl } from "@purser/postgres/TestDatabase"
import { StripeClient, StripeGateway } from "@purser/stripe"
import { StripeSim } from "@purser/stripe-sim"
import { chargeFor } from "@purser/testkit"
import { ConfigProvider, Effect, Layer, Redacted, Schema } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import type { AccessOptions } from "../src/Access.ts"
import { Console } from "../src/Console.ts"
import { makeConsoleClient } from "../src/ConsoleClient.ts"
import { layerConsole } from "../src/ConsoleApp.ts"

/** What no answer may hold. */
export const secrets = { stripeKey: "sk_test_console_of_tests", operator: "operator-token-of-tests", viewer: "viewer-token-of-tests" }

/** The console behind these doors. */
export const world = (access: AccessOptions, more: Readonly<Record<string, string>> = {}) =>
  Layer.unwrap(Effect.gen(function*() {
    const sim = yield* StripeSim
    const url = yield* postgresUrl
    const config = ConfigProvider.fromUnknown({
      PURSER_DATABASE_URL: Redacted.value(url),
      PURSER_STRIPE_URL: sim.url,
      PURSER_STRIPE_KEY: secrets.stripeKey,
      PURSER_PAUSE_POLL: "20 millis",
      PURSER_FEED_POLL: "20 millis",
      ...more
    })
    return layerConsole(access).pipe(Layer.provide(Layer.succeed(ConfigProvider.ConfigProvider, config)))
  })).pipe(Layer.provideMerge(StripeSim.layer()))

/** Nobody has to sign in. */
export const open: AccessOptions = { open: { actor: "ada", role: "operator" }, secureCookie: false, hosts: ["localhost", "127.0.0.1"] }

/** Two tokens. */
export const locked: AccessOptions = { operatorToken: Redacted.make(secrets.operator), viewerToken: Redacted.make(secrets.viewer), secureCookie: true }

/** An answer, read whole. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly json: Record<string, unknown>
}

/** How a request is made. */
export interface Ask {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** Asks the console, mounted under a path. */
export const asking = (path = "") =>
  Effect.map(Console.webHandler(path), (handle) => (url: string, { body, headers = {}, method = body === undefined ? "GET" : "POST" }: Ask = {}): Effect.Effect<Answer> =>
    Effect.promise(async () => {
      const response = await handle(new Request(`http://localhost${path}${url}`, {
        method,
        headers: { host: "localhost", ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      }))
      const text = await response.text()
      return { status: response.status, headers: response.headers, text, json: text.startsWith("{") ? JSON.parse(text) as Record<string, unknown> : {} }
    }))

const period = Schema.decodeSync(BillingPeriod)("2026-07")
const usd = Schema.decodeSync(Currency)("usd")

/** The typed client, over the console's own handler instead of a socket. */
export const client = Effect.gen(function*() {
  const handle = yield* Console.webHandler("/purser")
  const http = HttpClient.make((request, url, signal) =>
    Effect.map(
      Effect.promise(() => {
        const body = request.body._tag === "Uint8Array" ? { body: request.body.body as BodyInit } : {}
        return handle(new Request(url, { method: request.method, headers: request.headers, signal, ...body }))
      }),
      (response) => HttpClientResponse.fromWeb(request, response)
    ))
  return yield* makeConsoleClient({ url: "http://localhost/purser", token: Redacted.make(secrets.operator), actor: "grace" }).pipe(
    Effect.provideService(HttpClient.HttpClient, http)
  )
})

/** A worker's steps on the console's own database and simulator. */
export const pipeline = Layer.unwrap(Effect.map(StripeSim, (sim) =>
  ChargePipeline.layer.pipe(
    Layer.provide(StripeGateway.layerPaymentIntents),
    Layer.provide(StripeClient.layer({ key: Redacted.make("sk_test_worker"), url: sim.url }))
  )))

/** A charge of 25 dollars. */
export const charged = (customer: string, method = "pm_card_visa") =>
  Effect.gen(function*() {
    const request = chargeFor(customer, "2026-07", { paymentMethod: method, amountMinor: 2500 })
    yield* Effect.flatMap(ChargePipeline, ({ charge }) => charge(request))
    return { request, chargeKey: chargeKeyOf(request) }
  }).pipe(Effect.provide(pipeline))

/** Whatever figures an earlier test has set, they are enough. */
export const openCap = Effect.flatMap(SpendCap, (cap) =>
  Effect.ignore(cap.open({ namespace: "zmq-billing", billingPeriod: period, currency: usd, expectedMinor: 1_000_000n, headroomPercent: 110 })))
