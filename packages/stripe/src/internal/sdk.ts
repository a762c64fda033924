/**
 * The SDK as a writer of requests: it encodes parameters, sets headers and the API version, and holds the types. What
 * comes back goes past it.
 *
 * Left alone the SDK would send a request again after ECONNRESET even with retries off, take an error body without
 * `error` for success, lose the status of a body that is not JSON, and could not be interrupted. So the request that it built is
 * taken from it where it asks for the key, and the caller sends it once, when its turn has come. The SDK never hears of
 * an answer: its promise stays open, and goes with the last that knows of it.
 */
import { Redacted, Result } from "effect"
import type { Stripe } from "stripe"
import type { StripeSettings } from "../StripeConfig.ts"
import type { HttpRequest } from "./exchange.ts"
import { makeShapes, type Written } from "./shapes.ts"

/** A request that waits to be sent. */
export class Prepared implements HttpRequest {
  readonly method: string
  /** With its query. */
  readonly path: string
  readonly headers: HttpRequest["headers"]
  readonly body: string
  /** The account in its header; "" when there is none. */
  readonly account: string

  constructor({ body, method, path }: Written, headers: HttpRequest["headers"], account: string) {
    this.method = method
    this.path = path
    this.headers = headers
    this.body = body
    this.account = account
  }
}

/** What the SDK had to say of a request that it built none of. */
export type Refusal = Promise<string>

/** Has the SDK build one request, which `use` must ask for before it returns. */
export type Prepare = (use: (stripe: Stripe) => PromiseLike<unknown>, account: string | undefined) => Prepared | Refusal

/** The SDK wraps what it is told. */
const detailOf = (error: unknown): string => {
  if (!(error instanceof Error)) return "the SDK gave no reason"
  return "detail" in error && error.detail instanceof Error ? error.detail.message : error.message
}

const noRequest = (): string => "the SDK gave no reason"
const silent = () => undefined
const forEver = (): Promise<never> => new Promise(silent)

/** The SDK as it writes requests for these settings. `Sdk` is passed in because it is loaded when the layer is built, not at import. */
export const makeSdk = (Sdk: typeof Stripe, settings: StripeSettings): Prepare => {
  let isAsking = false
  let written: Written | undefined
  const stripe = new Sdk("", {
    // The SDK asks it as the last thing before it would send, and with all that it would send. It never hears of an answer.
    authenticator: (request) => {
      if (!isAsking) throw new Error("a request outside of a call")
      if (written !== undefined) throw new Error("a second request in one call")
      written = request
      return forEver()
    },
    httpClient: {
      getClientName: () => "purser",
      makeRequest: () => Promise.reject(new Error("requests are sent by their callers"))
    },
    maxNetworkRetries: 0,
    telemetry: false
  })

  const ask = (use: (stripe: Stripe) => PromiseLike<unknown>): Written | Refusal => {
    const { stackTraceLimit } = Error
    written = undefined
    isAsking = true
    // The SDK writes down the stack of each of its calls, for errors that go no further than here.
    Error.stackTraceLimit = 0
    const asked = Result.try(() => use(stripe))
    Error.stackTraceLimit = stackTraceLimit
    isAsking = false
    const built: Written | undefined = written
    written = undefined
    if (Result.isFailure(asked)) return Promise.resolve(detailOf(asked.failure))
    if (built === undefined) return Promise.resolve(asked.success).then(noRequest, detailOf)
    // It stays open; of what a call did beside its one request nothing is heard.
    asked.success.then(silent, silent)
    return built
  }

  const alike = makeShapes((use) => {
    const built = ask(use)
    return built instanceof Promise ? undefined : built
  })

  return (use, given) => {
    const request = alike(use) ?? ask(use)
    if (request instanceof Promise) return request
    const account = given ?? settings.account
    const headers: HttpRequest["headers"] = { ...request.headers, Authorization: `Bearer ${Redacted.value(settings.key)}` }
    if (account !== undefined) headers["Stripe-Account"] = account
    return new Prepared(request, headers, account ?? "")
  }
}
