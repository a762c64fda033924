/**
 * The SDK as a writer of requests: it encodes parameters, sets headers and the API version, and holds the types. What
 * comes back goes past it.
 *
 * Left alone the SDK would send a request again after ECONNRESET even with retries off, take an error body without
 * `error` for success, lose the status of a body that is not JSON, and could not be interrupted. So the HTTP client it is
 * given hands the request that the SDK built to the caller, who sends it once when its turn has come. The SDK never hears of
 * an answer: its promise stays open, and goes with the last that knows of it.
 */
import { Redacted, Result } from "effect"
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
}

interface Call {
  readonly account: string | undefined
  readonly onPrepared: (prepared: Prepared) => void
  sent: boolean
}

/** Has the SDK build one request, which `use` must ask for before it returns. `onRefused` is called with its reason when it builds none. */
export type Prepare = (
  use: (stripe: Stripe) => PromiseLike<unknown>,
  account: string | undefined,
  onPrepared: (prepared: Prepared) => void,
  onRefused: (detail: string) => void
) => void

/** Whose a request is, on its headers, beside the names that are sent. */
const asker = Symbol("call")
interface Asked {
  [asker]?: Call
}

/** The SDK wraps what our HTTP client says. */
const detailOf = (error: unknown): string => {
  if (!(error instanceof Error)) return "the SDK gave no reason"
  return "detail" in error && error.detail instanceof Error ? error.detail.message : error.message
}

/** The SDK on our connections. `Sdk` is passed in because it is loaded when the layer is built, not at import. */
export const makeSdk = (Sdk: typeof Stripe, origin: Origin, settings: StripeSettings): Prepare => {
  // An `AsyncLocalStorage` would tell too whose request it is, and cost every promise of the whole process.
  let asking: Call | undefined
  const httpClient: Stripe.HttpClient = {
    getClientName: () => "purser",
    // Host, protocol and timeout are ours: a call can go nowhere else and lasts as long as its fiber lets it.
    makeRequest: (_host, _port, path, method, headers, body) =>
      new Promise((_, reject) => {
        const call = (headers as Asked)[asker]
        if (call === undefined) return reject(new Error("a request outside of a call"))
        if (call.sent) return reject(new Error("a second request in one call"))
        call.sent = true
        const named = headers as Record<string, string>
        const account = call.account ?? settings.account
        const request = { path, method, headers: account === undefined ? named : { ...named, "Stripe-Account": account }, body }
        call.onPrepared({ method, path, account: account ?? "", send: (signal, onEnd) => origin.send(request, signal, onEnd) })
      })
  }
  const stripe = new Sdk("", {
    // The SDK asks it while it builds a request, and sends the very object of headers that it sees here.
    authenticator: (request) => {
      request.headers["Authorization"] = `Bearer ${Redacted.value(settings.key)}`
      if (asking !== undefined) (request.headers as Asked)[asker] = asking
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
    const { stackTraceLimit } = Error
    asking = call
    // The SDK writes down the stack of each of its calls, for errors that go no further than here.
    Error.stackTraceLimit = 0
    const asked = Result.try(() => use(stripe))
    Error.stackTraceLimit = stackTraceLimit
    asking = undefined
    if (Result.isSuccess(asked)) Promise.resolve(asked.success).then(() => refused(), refused)
    else refused(asked.failure)
  }
}
