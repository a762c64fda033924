/** The step inside an engine that is as clumsy as engines may be: it times out, repeats, forgets, and repeats at once. */
import { assert, it } from "@effect/vitest"
import { type ChargeInput, Purser } from "@purser/purser"
import { postgresUrl } from "@purser/postgres/TestDatabase"
import { StripeSim } from "@purser/stripe-sim"
import { Data, Effect, Redacted } from "effect"
import { chargeStep } from "./activity.ts"

class Terminal extends Data.TaggedError("Terminal")<{ readonly message: string }> {}

const invoice: ChargeInput = { customerId: "cust_1", billingPeriod: "2025-07", amountMinor: 1000, currency: "usd", stripeCustomerId: "cus_1" }

/** Repeats a step until it ends or fails for good, and remembers its result for nobody. */
const engine = async <A>(step: () => Promise<A>): Promise<A> => {
  for (;;) {
    const ended = await step().then((value) => ({ value }), (error: unknown) => ({ error }))
    if ("value" in ended) return ended.value
    if (ended.error instanceof Terminal) throw ended.error
  }
}

it.live("is safe to repeat: at once, after a lost answer, by a workflow that was started twice, and for ever", () =>
  Effect.scoped(Effect.gen(function*() {
    const sim = yield* StripeSim
    const url = Redacted.value(yield* postgresUrl)
    const purser = yield* Effect.acquireRelease(
      Effect.promise(() => Purser.make({ PURSER_DATABASE_URL: url, PURSER_STRIPE_URL: sim.url, PURSER_STRIPE_KEY: "rk_test_step", PURSER_GATEWAY_BACKOFF: "10 millis", PURSER_GATEWAY_ATTEMPTS: "2", PURSER_HAND_BACK: "10 millis" })),
      ({ close }) => Effect.promise(close)
    )
    yield* Effect.promise(() => purser.openCap({ billingPeriod: "2025-07", currency: "usd", expectedMinor: 10_000 }))
    const step = chargeStep(purser, (message) => new Terminal({ message }))
    // The payment is made, and its answer lost several times over.
    yield* sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", times: 3 }, action: { kind: "reset", at: "after" } })
    const outcomes = yield* Effect.promise(() => Promise.all(Array.from({ length: 5 }, () => engine(() => step(invoice)))))
    outcomes.push(yield* Effect.promise(() => engine(() => step({ ...invoice }))))
    assert.deepStrictEqual(new Set(outcomes.map(({ _tag }) => _tag)), new Set(["Succeeded"]))
    assert.deepStrictEqual(JSON.parse(JSON.stringify(outcomes.at(-1))), { ...outcomes.at(-1) })
    const other = yield* Effect.promise(() => engine(() => step({ ...invoice, amountMinor: 1001 })).catch((error: unknown) => error))
    assert.instanceOf(other, Terminal)
    assert.strictEqual(yield* sim.payments("cust_1", "2025-07"), 1)
  })).pipe(Effect.provide(StripeSim.layer())), 60_000)
