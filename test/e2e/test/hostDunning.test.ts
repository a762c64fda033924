/** Dunning inside a plain program: cases that open by themselves, a new card, a cancellation, and the program's own final action. */
import { assert, it } from "@effect/vitest"
import { type ChargeInput, Purser, type PurserHandle } from "@purser/purser"
import { StripeSim } from "@purser/stripe-sim"
import { Effect, Schedule } from "effect"
import { stores } from "../src/Store.ts"
import { elsewhere, signed, webhookSecret } from "../src/Watch.ts"

const name = (customerId: string) => ({ customerId, billingPeriod: "2025-07" })
const charge = (customer: string, paymentMethod: string): ChargeInput => ({ ...name(customer), amountMinor: 1000, currency: "usd", stripeCustomerId: `cus_${customer}`, paymentMethod })

it.live("a customer's new default card is tried at once when Stripe tells of it, and an old one is not tried again", () =>
  Effect.scoped(Effect.gen(function*() {
    const sim = yield* StripeSim
    const store = yield* stores.find(([kind]) => kind === "pglite")![1]
    const purser = yield* Effect.acquireRelease(
      Effect.promise(() => Purser.make({
        PURSER_STRIPE_URL: sim.url, PURSER_STRIPE_KEY: "rk_test_plain", PURSER_PGLITE_FSYNC: "off", ...store, PURSER_WEBHOOK_SECRET: webhookSecret, PURSER_DUNNING: "on", PURSER_DUNNING_POLL: "50 millis"
      })),
      ({ close }) => Effect.promise(close)
    )
    const setCard = (card: string) => elsewhere("POST", "/v1/customers/cus_moved", { "invoice_settings[default_payment_method]": card })
    const tell = Effect.fnUntraced(function*(id: string, customer = "cus_moved") {
      const { body, header } = yield* signed({ id, type: "customer.updated", objectId: customer })
      const answer = yield* Effect.promise(() => purser.webhooks(new Request("http://x/", { method: "POST", body, headers: { "stripe-signature": header } })))
      assert.strictEqual(answer.status, 200)
    })
    const cases = Effect.promise(() => purser.dunningCases({ all: true }))
    const confirms = Effect.map(sim.requests, (all) => all.filter(({ path }) => path.endsWith("/confirm")).length)
    yield* setCard("pm_card_chargeDeclinedExpiredCard")
    yield* Effect.promise(() => purser.openCap({ billingPeriod: "2025-07", currency: "usd", expectedMinor: 10_000 }))
    const { paymentMethod: _, ...byDefault } = charge("moved", "")
    assert.strictEqual((yield* Effect.promise(() => purser.charge(byDefault)))._tag, "Declined")
    yield* Effect.repeat(cases, { until: ([one]) => one?.state === "open" && one.goesOnAtMs !== null })
    // The same card, and a stranger's: nobody is asked for anything.
    yield* tell("evt_name")
    yield* tell("evt_stranger", "cus_stranger")
    yield* setCard("pm_card_visa")
    yield* tell("evt_card")
    const [paid] = yield* Effect.repeat(cases, { until: ([one]) => one?.state === "paid" })
    assert.deepInclude(paid?.charge, { state: "succeeded", attempt: 2 })
    assert.deepStrictEqual([yield* confirms, yield* sim.payments("moved", "2025-07")], [2, 1])
  })).pipe(Effect.provide(StripeSim.layer())), 60_000)

it.live("Purser.make follows declines up where that is wished for, and does the program's final action", () =>
  Effect.scoped(Effect.gen(function*() {
    const sim = yield* StripeSim
    const store = yield* stores.find(([kind]) => kind === "postgres")![1]
    const ended: Array<string> = []
    let refuses = 1
    const start = () =>
      Purser.make({
        PURSER_STRIPE_URL: sim.url, PURSER_STRIPE_KEY: "rk_test_plain", ...store,
        PURSER_DUNNING: "on", PURSER_DUNNING_POLL: "50 millis", PURSER_DUNNING_WAITS: "1 hour", PURSER_DUNNING_GRACE: "2 seconds"
      }, {
        dunningGivenUp: ({ case: { caseId }, record }) => {
          ended.push(`${record.request.customerId} ${caseId}`)
          if (refuses-- > 0) throw new Error("the shop is closed")
        }
      })
    const purser = yield* Effect.acquireRelease(Effect.promise(start), ({ close }) => Effect.promise(close))
    const until = (customer: string, state: string) =>
      Effect.repeat(Effect.promise(() => purser.dunningCases({ all: true })), {
        until: (cases) => cases.some((one) => one.stripeCustomerId === `cus_${customer}` && one.state === state)
      })
    const calls = <A>(call: (purser: PurserHandle) => Promise<A>) => Effect.promise(() => call(purser))
    yield* calls(({ openCap }) => openCap({ billingPeriod: "2025-07", currency: "usd", expectedMinor: 10_000 }))
    yield* calls(({ charge: pay }) => pay(charge("card", "pm_card_chargeDeclined")))
    yield* calls(({ charge: pay }) => pay(charge("tired", "pm_card_chargeDeclined")))
    yield* calls(({ charge: pay }) => pay(charge("gone", "pm_card_chargeDeclinedLostCard")))
    for (const customer of ["card", "tired", "gone"]) yield* until(customer, "open")

    assert.strictEqual(yield* calls(({ newCard }) => newCard({ stripeCustomerId: "cus_card", paymentMethod: "pm_card_visa", reason: "changed on our site" })), 1)
    yield* until("card", "paid")
    assert.isTrue(yield* calls(({ cancelDunning }) => cancelDunning({ ...name("tired"), reason: "goodwill" })))
    assert.isFalse(yield* calls(({ cancelDunning }) => cancelDunning({ ...name("tired"), reason: "goodwill" })))
    assert.deepStrictEqual(yield* calls(({ startDunning }) => startDunning({ ...name("card"), reason: "x" })), { _tag: "NotDeclined", state: "succeeded" })

    // The final action fails, is kept, and would come again in a minute: until then the case is open.
    yield* Effect.repeat(Effect.sync(() => ended.length), { until: (times) => times === 1, schedule: Schedule.spaced("20 millis") })
    const [open] = yield* calls(({ dunningCases }) => dunningCases())
    assert.deepInclude(open, { state: "open", stripeCustomerId: "cus_gone" })
    assert.strictEqual(ended[0], `gone ${open!.caseId}`)
    const paid = (yield* sim.books).filter(({ payments }) => payments > 0)
    assert.deepStrictEqual(paid.map(({ customer, payments }) => [customer, payments]), [["card", 1]])
  })).pipe(Effect.provide(StripeSim.layer())), 60_000)
