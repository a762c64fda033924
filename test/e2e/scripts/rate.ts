/**
 * Measures how much of the rate that Stripe allows the engine uses, against a simulator that enforces it, and fails below
 * 95 %. What is counted are the calls that were let in, by the simulator's journal, without the first and the last second.
 *
 *     node test/e2e/scripts/rate.ts [seconds]
 */
import { ChargePause, ChargeRequest, Ledger, SpendCap } from "@purser/core"
import { ChargePipeline, PipelineOptions } from "@purser/engine"
import { type GatewayName, StripeClient, StripeGateway } from "@purser/stripe"
import { type RateLimits, StripeSim } from "@purser/stripe-sim"
import { Clock, Console, Effect, Layer, Redacted, Schema } from "effect"

const seconds = Number(process.argv[2] ?? 20)

interface Case {
  readonly title: string
  readonly gateway: GatewayName
  readonly limits: RateLimits
  /** Calls a second that the limits leave to this way of paying. */
  readonly allowed: number
  /** Which calls are counted. */
  readonly counted: RegExp
}

const cases: ReadonlyArray<Case> = [
  { title: "sandbox, 25 in all", gateway: "payment_intents", limits: { globalPerSecond: 25, endpointPerSecond: 25 }, allowed: 25, counted: /./ },
  { title: "live, 25 to an endpoint: confirm", gateway: "payment_intents", limits: { globalPerSecond: 100, endpointPerSecond: 25 }, allowed: 25, counted: /confirm$/ },
  { title: "live, 100 in all", gateway: "payment_intents", limits: { globalPerSecond: 100, endpointPerSecond: 100 }, allowed: 100, counted: /./ },
  { title: "live, 25 to an endpoint: charges", gateway: "charges", limits: { globalPerSecond: 100, endpointPerSecond: 25 }, allowed: 25, counted: /charges$/ }
]

const decode = Schema.decodeSync(ChargeRequest)
const requestOf = (i: number) =>
  decode({
    namespace: "rate", customerId: `c${i}`, billingPeriod: "2025-07", amountMinor: 1000, currency: "usd", stripeCustomerId: `cus_${i}`, paymentMethod: "pm_card_visa"
  })

const measure = ({ allowed, counted, gateway, limits, title }: Case) =>
  Effect.gen(function*() {
    const sim = yield* StripeSim
    const pipeline = yield* ChargePipeline
    yield* (yield* SpendCap).open({ ...requestOf(0), expectedMinor: 10n ** 12n, headroomPercent: 110 })
    yield* sim.setRateLimits(limits)
    const untilMs = (yield* Clock.currentTimeMillis) + seconds * 1000
    let next = 0
    let failed = 0
    const one: Effect.Effect<void> = Effect.suspend(() => pipeline.charge(requestOf(next++))).pipe(
      Effect.asVoid,
      Effect.catch((error) => Effect.andThen(Effect.sync(() => void failed++), Console.error(error.message))),
      Effect.andThen(Clock.currentTimeMillis),
      Effect.flatMap((nowMs) => nowMs < untilMs ? one : Effect.void)
    )
    yield* Effect.all(Array.from({ length: 100 }, () => one), { concurrency: "unbounded", discard: true })
    const times = (yield* sim.requests).filter((entry) => entry.status === 200 && counted.test(entry.path)).map(({ atMs }) => atMs)
    const refused = (yield* sim.requests).filter(({ status }) => status === 429).length
    const twice = (yield* sim.books).filter(({ payments }) => payments > 1).length
    const [from, to] = [times[0]! + 2000, untilMs - 1000]
    const rate = times.filter((time) => time > from && time <= to).length / ((to - from) / 1000)
    const share = rate / allowed
    yield* Console.log(`${title}: ${rate.toFixed(1)} of ${allowed} calls/s (${(share * 100).toFixed(1)} %), ${refused} refused, ${failed} failed, ${twice} paid twice`)
    return share >= 0.95 && failed === 0 && twice === 0
  }).pipe(Effect.provide(
    ChargePipeline.layer.pipe(
      Layer.provide(Layer.unwrap(Effect.map(StripeSim, ({ url }) =>
        StripeGateway.layerNamed(gateway).pipe(Layer.provide(StripeClient.layer({
          key: Redacted.make("sk_test_rate"), url, rate: limits.globalPerSecond, endpointRate: limits.endpointPerSecond
        })))))),
      Layer.provide(PipelineOptions.layer({ worker: "rate" })),
      Layer.provideMerge(Layer.mergeAll(Ledger.layerMemory, SpendCap.layerMemory, ChargePause.layerMemory, StripeSim.layer()))
    )
  ))

const passed = await Effect.runPromise(Effect.forEach(cases, measure))
process.exitCode = passed.every(Boolean) ? 0 : 1
