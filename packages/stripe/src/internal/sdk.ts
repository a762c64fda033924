/**
 * The SDK as a writer of requests: it encodes parameters, sets headers and the API version, and holds the types. What
 * comes back goes past it.
 *
 * Left alone the SDK would send a request again after ECONNRESET even with retries off, take an error body without
 * `error` for success, lose the status of a body that is not JSON, and could not be interrupted. So the HTTP client it is
 * given hands the request that the SDK built to the caller, who sends it once when its turn has come, and tells the SDK that
 * all went well with an empty object.
 */
import { Redacted } from "effect"
import { AsyncLocalStorage } from "node:async_hooks"
import type { Stripe } from "stripe"
import type { StripeSettings } from "../StripeConfig.ts"
import type { HttpAnswer, HttpFailure, Origin } from "./exchange.ts"

/** How a request ended. */
export type CallEnd = { readonly answer: HttpAnswer } | { readonly failure: HttpFailure }

/** A request that the SDK has built and that waits to be sent. */
export interface Prepared {
  readonly method: string
  /** With its query. */
  readonly path: string
  /** The account in its header; "" when there is none. */
  readonly account: string
  /** Sends it, once. */
  readonly send: (signal: AbortSignal, onEnd: (end: CallEnd) => void) => void
  /** Lets the SDK forget it. */
  readonly abandon: () => void
}

interface Call {
  readonly account: string | undefined
  readonly onPrepared: (prepared: Prepared) => void
  sent: boolean
}

/** Has the SDK build one request. `onRefused` is called with its reason when it builds none. */
export type Prepare = (
  use: (stripe: Stripe) => PromiseLike<unknown>,
  account: string | undefined,
  onPrepared: (prepared: Prepared) => void,
  onRefused: (detail: string) => void
) => void

/** One for all clients: Node visits each that was ever used whenever anything asynchronous begins, and forgets none. */
const calls = new AsyncLocalStorage<Call>()

const detailOf = (error: unknown): string => error instanceof Error ? error.message : "the SDK gave no reason"

/** The SDK on our connections. `Sdk` is passed in because it is loaded when the layer is built, not at import. */
export const makeSdk = (Sdk: typeof Stripe, origin: Origin, settings: StripeSettings): Prepare => {
  const answered: Stripe.HttpClientResponse = {
    getStatusCode: () => 200,
    getHeaders: () => ({}),
    getRawResponse: () => ({}),
    toStream: () => {
      throw new Error("streams are not supported")
    },
    toJSON: () => Promise.resolve({})
  }
  const httpClient: Stripe.HttpClient = {
    getClientName: () => "purser",
    // Host, protocol and timeout are ours: a call can go nowhere else and lasts as long as its fiber lets it.
    makeRequest: (_host, _port, path, method, headers, body) =>
      new Promise((resolve, reject) => {
        const call = calls.getStore()
        if (call === undefined) return reject(new Error("a request outside of a call"))
        if (call.sent) return reject(new Error("a second request in one call"))
        call.sent = true
        const named = headers as Record<string, string>
        const account = call.account ?? settings.account
        call.onPrepared({
          method,
          path,
          account: account ?? "",
          send: (signal, onEnd) => {
            const request = { path, method, headers: account === undefined ? named : { ...named, "Stripe-Account": account }, body }
            origin.send(request, signal, (end) => {
              resolve(answered)
              onEnd(end)
            })
          },
          abandon: () => resolve(answered)
        })
      })
  }
  const stripe = new Sdk("", {
    authenticator: (request) => {
      request.headers["Authorization"] = `Bearer ${Redacted.value(settings.key)}`
      return Promise.resolve()
    },
    httpClient,
    maxNetworkRetries: 0,
    telemetry: false
  })
  return (use, account, onPrepared, onRefused) => {
    const call: Call = { account, onPrepared, sent: false }
    const refused = (error?: unknown) => {
      if (!call.sent) onRefused(detailOf(error))
    }
    calls.run(call, () => Promise.resolve(stripe).then(use).then(() => refused(), refused))
  }
}
