/** What the tests share: the real SDK on a simulator, raw requests, and waiting for a state of the journal. */
import type { RequestEntry, StripeSimShape } from "@purser/stripe-sim"
import { Data, Effect } from "effect"
import { request as httpRequest } from "node:http"
import { Stripe } from "stripe"

export type Sim = StripeSimShape

/** An SDK that resends nothing by itself (except a reset, which it always repeats once). */
export const sdk = (sim: Sim): Stripe =>
  new Stripe("sk_test_sim", {
    host: sim.host,
    port: sim.port,
    protocol: "http",
    telemetry: false,
    maxNetworkRetries: 0
  })

/** The SDK's error, as the value of a call that must fail. */
export class Refused extends Data.TaggedError("Refused")<{ readonly error: Stripe.errors.StripeError }> {}

/** A call of the SDK that must succeed. */
export const call = <A>(run: () => Promise<A>): Effect.Effect<A, Refused> =>
  Effect.tryPromise({ try: run, catch: (error) => new Refused({ error: error as Stripe.errors.StripeError }) })

/** The error of a call of the SDK that must fail. */
export const refusal = (run: () => Promise<unknown>) => Effect.map(Effect.flip(call(run)), ({ error }) => error)

export interface RawAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | Array<string> | undefined>>
  readonly text: string
  readonly json: any
}

export interface RawOptions {
  readonly method?: string
  readonly key?: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** What a connection that broke tells. */
export class Broken extends Data.TaggedError("Broken")<{ readonly code: string }> {}

/** One request on a connection of its own, with nothing between it and the socket. */
export const raw = (sim: Sim, path: string, options: RawOptions = {}): Effect.Effect<RawAnswer, Broken> =>
  Effect.callback<RawAnswer, Broken>((resume) => {
    const broken = (error: NodeJS.ErrnoException) => resume(Effect.fail(new Broken({ code: error.code ?? error.message })))
    const outgoing = httpRequest({
      host: sim.host,
      port: sim.port,
      path,
      method: options.method ?? (options.body === undefined ? "GET" : "POST"),
      agent: false,
      headers: {
        authorization: "Bearer sk_test_sim",
        ...(options.body === undefined ? {} : { "content-type": "application/x-www-form-urlencoded" }),
        ...(options.key === undefined ? {} : { "idempotency-key": options.key }),
        ...options.headers
      }
    }, (response) => {
      let text = ""
      response.setEncoding("utf8").on("data", (chunk: string) => text += chunk)
      response.on("error", broken)
      response.on("end", () =>
        resume(Effect.succeed({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text,
          json: /^[{[]/.test(text) ? JSON.parse(text) : undefined
        })))
    })
    outgoing.on("error", broken)
    outgoing.end(options.body)
    return Effect.sync(() => outgoing.destroy())
  })

/** A request that asks for a PaymentIntent, as form text. */
export const intentForm = (more = ""): string =>
  `amount=1999&currency=usd&customer=cus_1&payment_method=pm_card_visa&allowed_payment_method_types[0]=card${more}`

/** Waits until the journal holds a request like this, letting the event loop turn. */
export const arrived = (sim: Sim, like: (entry: RequestEntry) => boolean): Effect.Effect<RequestEntry> =>
  Effect.gen(function*() {
    while (true) {
      const found = (yield* sim.requests).find(like)
      if (found !== undefined) return found
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
    }
  })
