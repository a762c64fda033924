/**
 * How much of the rate that Stripe allows is used, against a simulator that enforces it. What is counted are the calls that
 * were let in, by the simulator's journal, without the first two seconds and the last; who was charged, by its books.
 */
import { ChargePause, ChargeRequest, Ledger, SpendCap } from "@purser/core"
import { ChargePipeline, PipelineOptions } from "@purser/engine"
import { type GatewayName, StripeClient, StripeGateway } from "@purser/stripe"
import { type RateLimits, StripeSim } from "@purser/stripe-sim"
import { Clock, Effect, Layer, Redacted, Schema } from "effect"
import { type Bench, type Goal, inTurns, type Suite } from "../support/Suite.ts"

interface Case {
  readonly title: string
  readonly gateway: GatewayName
  readonly limits: RateLimits
  /** Calls a second that the limits leave to this way of paying. */
  readonly allowed: number
  /** Which calls are counted. */
  readonly counted: RegExp
}

const live: Case = { title: "live account, 100 in all", gateway: "payment_intents", limits: { globalPerSecond: 100, endpointPerSecond: 100 }, allowed: 100, counted: /./ }
const others: ReadonlyArray<Case> = [
  { title: "sandbox, 25 in all", gateway: "payment_intents", limits: { globalPerSecond: 25, endpointPerSecond: 25 }, allowed: 25, counted: /./ },
  { title: "live account, 25 to an endpoint, confirm", gateway: "payment_intents", limits: { globalPerSecond: 100, endpointPerSecond: 25 }, allowed: 25, counted: /confirm$/ },
  { title: "live account, 25 to an endpoint, charges", gateway: "charges", limits: { globalPerSecond: 100, endpointPerSecond: 25 }, allowed: 25, counted: /charges$/ }
]

const decode = Schema.decodeSync(ChargeRequest)
const requestOf = (i: number) =>
  decode({
    namespace: "rate", customerId: `c${i}`, billingPeriod: "2025-07", amountMinor: 1000, currency: "usd", stripeCustomerId: `cus_${i}`, paymentMethod: "pm_card_visa"
  })

/** Many callers for so many seconds; everything that was begun is waited for. */
const measure = ({ allowed, counted, gateway, limits }: Case, seconds: number) =>
  Effect.gen(function*() {
    const sim = yield* StripeSim
    const pipeline = yield* ChargePipeline
    yield* (yield* SpendCap).open({ ...requestOf(0), expectedMinor: 10n ** 12n, headroomPercent: 110 })
    yield* sim.setRateLimits(limits)
    const untilMs = (yield* Clock.currentTimeMillis) + seconds * 1000
    let next = 0
    const one: Effect.Effect<void> = Effect.suspend(() => pipeline.charge(requestOf(next++))).pipe(
      Effect.ignore,
      Effect.andThen(Clock.currentTimeMillis),
      Effect.flatMap((nowMs) => nowMs < untilMs ? one : Effect.void)
    )
    yield* Effect.all(Array.from({ length: 100 }, () => one), { concurrency: "unbounded", discard: true })
    const requests = yield* sim.requests
    const times = requests.filter((entry) => entry.status === 200 && counted.test(entry.path)).map(({ atMs }) => atMs)
    const books = yield* sim.books
    const [from, to] = [times[0]! + 2000, untilMs - 1000]
    return {
      share: times.filter((time) => time > from && time <= to).length / ((to - from) / 1000) / allowed,
      refused: requests.filter(({ status }) => status === 429).length,
      // A charge that was asked for and that the books do not have once.
      lost: next - books.filter(({ payments }) => payments === 1).length
    }
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

export const limit: Suite = {
  name: "limit",
  title: "Stripe's limit",
  run: async (bench: Bench) => {
    const seconds = bench.count(20, 8)
    const cases = bench.quick ? [live] : [live, ...others]
    const found = await inTurns(cases.map(({ title }) => title), bench.rounds, async (title) => {
      const answer = await Effect.runPromise(measure(cases.find((one) => one.title === title)!, seconds))
      bench.say(`${title}: ${(answer.share * 100).toFixed(1)} %, ${answer.refused} refused, ${answer.lost} lost`)
      return answer
    })
    return {
      setting: `100 callers for ${seconds} s a round, at a simulator that refuses what is over the limit; a call is counted when it was let in`,
      figures: cases.map(({ allowed, title }) => ({ program: title, what: "calls/s", values: found[title]!.map(({ share }) => share * allowed) })),
      goals: cases.flatMap(({ title }): ReadonlyArray<Goal> => [
        { what: `${title}: let in ÷ allowed`, wanted: { atLeast: 0.95 }, values: found[title]!.map(({ share }) => share) },
        { what: `${title}: charges lost or paid twice`, wanted: { atMost: 0 }, values: found[title]!.map(({ lost }) => lost) }
      ])
    }
  }
}
