/** A console over a database of its own and the simulator, answering without a socket. */
import { postgresUrl } from "@purser/postgres/TestDatabase"
import { StripeSim } from "@purser/stripe-sim"
import { ConfigProvider, Effect, Layer, Redacted } from "effect"
import type { AccessOptions } from "../src/Access.ts"
import { Console } from "../src/Console.ts"
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
