/**
 * A shop with two workers behind every delivery: the naive one, which gives Stripe the key that the sender wrote, and ours.
 * Both charge at one simulator; its books count the payments of each.
 */
import { type ChargeHandler, type ChargeRequest, Currency, defaultNamespace, parsePeriod, SpendCap } from "@purser/core"
import { ChargePipeline, PipelineOptions } from "@purser/engine"
import { PgLedger, PgSpendCap } from "@purser/postgres"
import { layerPglite } from "@purser/postgres/TestDatabase"
import { StripeClient, StripeGateway } from "@purser/stripe"
import { StripeSim } from "@purser/stripe-sim"
import { Context, Effect, Layer, Queue, Redacted, Result, Schema } from "effect"
import { createHash } from "node:crypto"

/** The period of every bill here. */
export const period = "2026-07"

const gateway = Layer.unwrap(Effect.map(StripeSim, ({ url }) =>
  StripeGateway.layerPaymentIntentsWith().pipe(Layer.provide(StripeClient.layer({ key: Redacted.make("sk_test_interop"), url })))))

/** What a naive sender makes of something that changes: a key that looks like a good one. */
export const naiveKey = (part: string | number, customer: string): string =>
  createHash("sha256").update(`${part}:${customer}:${period}`).digest("hex").slice(0, 32)

/** The plain form of a bill, as bytes on the wire. */
export const bill = (customer: string, key: string, more: Readonly<Record<string, unknown>> = {}): string =>
  JSON.stringify({ customer_id: customer, billing_period: period, amount_cents: 1000, stripe_customer_id: `cus_${customer}`, payment_method: "pm_card_visa", idempotency_key: key, ...more })

/** The workers and the books. */
export class Shop extends Context.Service<Shop, {
  /** Both workers charge; the answer is ours. */
  readonly serve: ChargeHandler
  /** Our worker alone. */
  readonly oursOnly: ChargeHandler
  /** Waits for the next delivery that both workers have charged for. */
  readonly served: Effect.Effect<ChargeRequest>
  /** Payments by the simulator's books: of the naive worker, and ours. */
  readonly payments: (customer: string, billingPeriod?: string) => Effect.Effect<readonly [naive: number, ours: number]>
}>()("@purser/test-interop/Shop") {
  /** On a database and a simulator of its own, with a cap that has room. */
  static readonly layer = Layer.effect(Shop, Effect.gen(function*() {
    const sim = yield* StripeSim
    const pipeline = yield* ChargePipeline
    const cap = yield* SpendCap
    const deliveries = yield* Queue.unbounded<ChargeRequest>()
    const naively = (request: ChargeRequest) =>
      Effect.promise(() =>
        fetch(`${sim.url}/v1/payment_intents`, {
          method: "POST",
          headers: {
            authorization: "Bearer sk_test_interop",
            "content-type": "application/x-www-form-urlencoded",
            "idempotency-key": request.senderKey ?? "none"
          },
          body: new URLSearchParams({
            amount: String(request.amountMinor),
            currency: request.currency,
            customer: request.stripeCustomerId,
            payment_method: "pm_card_visa",
            confirm: "true",
            off_session: "true",
            "metadata[customer_id]": `naive ${request.customerId}`,
            "metadata[billing_period]": request.billingPeriod
          })
        }).then((response) => response.ok ? response.text() : response.text().then((text) => Promise.reject(new Error(text))))
      )
    for (const billingPeriod of [period, "Q3-2026"]) {
      yield* cap.open({
        namespace: defaultNamespace,
        billingPeriod: Result.getOrThrow(parsePeriod(billingPeriod)),
        currency: Schema.decodeSync(Currency)("usd"),
        expectedMinor: 1_000_000n,
        headroomPercent: 110
      })
    }
    const oursOnly: ChargeHandler = (request) => Effect.tap(pipeline.charge(request), () => Queue.offer(deliveries, request))
    return Shop.of({
      serve: (request) => Effect.andThen(naively(request), oursOnly(request)),
      oursOnly,
      served: Queue.take(deliveries),
      payments: (customer, billingPeriod = period) =>
        Effect.all([sim.payments(`naive ${customer}`, billingPeriod), sim.payments(customer, billingPeriod)])
    })
  })).pipe(
    Layer.provide(ChargePipeline.layer),
    Layer.provideMerge(Layer.mergeAll(PgLedger.layer, PgSpendCap.layer, gateway)),
    Layer.provideMerge(Layer.mergeAll(layerPglite, StripeSim.layer())),
    Layer.provide(PipelineOptions.layer({ worker: "ours" }))
  )
}
