/**
 * The SDK as a writer of requests: it encodes parameters, sets headers and the API version, and holds the types. What
 * comes back goes past it.
 *
 * Left alone the SDK would send a request again after ECONNRESET even with retries off, take an error body without
 * `error` for success, lose the status of a body that is not JSON, and could not be interrupted. So the HTTP client it is
 * given sends once per call, tells the SDK that all went well with an empty object, and hands the real end to the caller.
 */
import { Redacted } from "effect"
import { AsyncLocalStorage } from "node:async_hooks"
import type { Stripe } from "stripe"
import type { StripeSettings } from "../StripeConfig.ts"
import type { HttpAnswer, HttpFailure, Origin } from "./exchange.ts"

/** How a call ended. */
export type CallEnd =
  | { readonly answer: HttpAnswer }
  | { readonly failure: HttpFailure }
  | { readonly notSent: string }

interface Call {
  readonly signal: AbortSignal
  sent: boolean
  end: { readonly answer: HttpAnswer } | { readonly failure: HttpFailure } | undefined
}

/** Runs one SDK call. */
export type RunCall = (
  use: (stripe: Stripe) => PromiseLike<unknown>,
  signal: AbortSignal,
  onEnd: (end: CallEnd) => void
) => void

const detailOf = (error: unknown): string => error instanceof Error ? error.message : "the SDK gave no reason"

/** The SDK on our connections. `Sdk` is passed in because it is loaded when the layer is built, not at import. */
export const makeSdk = (Sdk: typeof Stripe, origin: Origin, settings: StripeSettings): RunCall => {
  const calls = new AsyncLocalStorage<Call>()
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
        origin.send({ path, method, headers: headers as Record<string, string>, body }, call.signal, (end) => {
          call.end = end
          resolve(answered)
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
    telemetry: false,
    ...(settings.account === undefined ? {} : { stripeAccount: settings.account })
  })
  return (use, signal, onEnd) => {
    const call: Call = { signal, sent: false, end: undefined }
    const settle = (error?: unknown) => onEnd(call.end ?? { notSent: detailOf(error) })
    calls.run(call, () => Promise.resolve(stripe).then(use).then(() => settle(), settle))
  }
}
