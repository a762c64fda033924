/** Attempts and declines on the real stores against the simulator: which answer belongs to which attempt. */
import { assert, describe, it } from "@effect/vitest"
import { ChargeGateway, type ChargeRequest, Ledger, SpendCap } from "@purser/core"
import { ChargePipeline, Sweeper } from "@purser/engine"
import { StripeSim } from "@purser/stripe-sim"
import { chargeFor } from "@purser/testkit"
import { Effect, Exit } from "effect"
import { databases } from "../src/Long.ts"
import { advance, Crash, openCap, payments, world } from "../src/World.ts"

const poor = "pm_card_visa_chargeDeclinedInsufficientFunds"
const charge = (request: ChargeRequest) => Effect.flatMap(ChargePipeline, (pipeline) => pipeline.charge(request))
const find = (request: ChargeRequest) => Effect.map(Effect.flatMap(Ledger, (ledger) => ledger.find(request.chargeKey)), (record) => record!)
const reopen = (request: ChargeRequest, paymentMethod?: string) =>
  Effect.flatMap(Ledger, (ledger) =>
    ledger.reopen({
      chargeKeys: [request.chargeKey], from: ["declined", "rejected", "requires_action"], actor: "test", reason: "test",
      ...(paymentMethod === undefined ? {} : { paymentMethod })
    }))
/** How often a bank was really asked. */
const asked = Effect.map(Effect.flatMap(StripeSim, (sim) => sim.requests), (all) =>
  all.filter(({ path, replayed, status }) => path.endsWith("/confirm") && !replayed && (status === 402 || status === 200 || status === null)).length)

for (const [name, database] of databases) {
  describe(`declines on ${name}`, () => {
    it.live("a worker that died with the decline in its hands: recorded as that attempt's, and no bank is asked again, days later", () =>
      Effect.gen(function*() {
        for (const later of ["1 minute", "25 hours"] as const) {
          const request = chargeFor(`died-${later.replace(" ", "")}`, "2026-07", { paymentMethod: poor })
          yield* openCap(request)
          yield* (yield* Crash).at("after-confirm")
          assert.isTrue(Exit.isFailure(yield* Effect.exit(charge(request))))
          const before = yield* asked
          yield* advance(later)
          yield* (yield* Sweeper).sweepOnce
          assert.deepInclude({ ...yield* find(request) }, { state: "declined", attempt: 1 }, later)
          assert.strictEqual(yield* asked, before, later)
        }
      }).pipe(Effect.provide(world(database))), 120_000)

    it.live("a new card after a decline: the same object, attempt n + 1, one payment", () =>
      Effect.gen(function*() {
        const request = chargeFor("new-card", "2026-07", { paymentMethod: poor })
        yield* openCap(request)
        assert.strictEqual((yield* charge(request))._tag, "Declined")
        const object = (yield* find(request)).paymentIntentId
        assert.strictEqual(yield* reopen(request, "pm_card_visa"), 1)
        assert.strictEqual((yield* charge(request))._tag, "Succeeded")
        const record = yield* find(request)
        assert.deepInclude({ ...record }, { state: "succeeded", attempt: 2, paymentIntentId: object, chosenMethod: "pm_card_visa" })
        assert.strictEqual(yield* payments(request), 1)
        assert.strictEqual((yield* (yield* SpendCap).report())[0]?.reservations, 1)
        assert.isTrue((yield* charge(request)).alreadySettled)
      }).pipe(Effect.provide(world(database))), 120_000)

    it.live("the chosen card outlives a canceled object", () =>
      Effect.gen(function*() {
        const request = chargeFor("canceled", "2026-07", { paymentMethod: poor })
        yield* openCap(request)
        assert.strictEqual((yield* charge(request))._tag, "Declined")
        const record = yield* find(request)
        yield* (yield* ChargeGateway).cancel({ chargeKey: request.chargeKey, request, generation: 1 }, record.paymentIntentId!)
        yield* reopen(request, "pm_card_visa")
        assert.strictEqual((yield* charge(request))._tag, "Succeeded")
        assert.deepInclude({ ...yield* find(request) }, { generation: 2, attempt: 2 })
        assert.strictEqual(yield* payments(request), 1)
      }).pipe(Effect.provide(world(database))), 120_000)

    it.live("a cached decline is never taken for the answer to a new attempt, though its key is that attempt's", () =>
      Effect.gen(function*() {
        const request = chargeFor("cached", "2026-07", { paymentMethod: poor })
        yield* openCap(request)
        yield* (yield* Crash).at("before-confirm")
        yield* Effect.exit(charge(request))
        // What a ledger that was restored from a backup has forgotten: two attempts, both declined.
        const { paymentIntentId: id } = yield* find(request)
        const gateway = yield* ChargeGateway
        const order = { chargeKey: request.chargeKey, request, generation: 1 }
        for (const attempt of [1, 2]) {
          yield* Effect.flip(gateway.confirm(order, { id: id!, attempt, paymentMethod: poor, keySuffix: "" }))
        }
        const calls = yield* asked
        yield* advance("1 minute")
        yield* (yield* Sweeper).sweepOnce
        const first = yield* find(request)
        assert.deepInclude({ ...first }, { state: "declined", attempt: 1 })
        assert.strictEqual(yield* asked, calls)
        // The key of attempt 2 answers the forgotten decline again; the bank is asked all the same.
        yield* reopen(request)
        const second = yield* charge(request)
        assert.strictEqual(yield* asked, calls + 1)
        const evidence = (outcome: typeof second | null) => outcome?._tag === "Declined" ? outcome.declinedChargeId : undefined
        assert.isString(evidence(second))
        assert.notStrictEqual(evidence(second), evidence(first.outcome))
        yield* reopen(request, "pm_card_visa")
        assert.strictEqual((yield* charge(request))._tag, "Succeeded")
        assert.strictEqual(yield* payments(request), 1)
      }).pipe(Effect.provide(world(database))), 120_000)

    it.live("who has to authenticate is no decline: room is held, and what the customer did is found without asking", () =>
      Effect.gen(function*() {
        const sim = yield* StripeSim
        const here = chargeFor("authenticates", "2026-07", { paymentMethod: "pm_card_authenticationRequired" })
        yield* openCap(here)
        const first = yield* charge(here)
        assert.strictEqual(first._tag, "RequiresAction")
        const { paymentIntentId: id } = yield* find(here)
        assert.strictEqual((yield* (yield* SpendCap).report())[0]?.reservations, 1)
        // The customer comes back and authenticates on the site, on the same object.
        const body = new URLSearchParams({ payment_method: "pm_card_visa" })
        yield* Effect.promise(() => fetch(`${sim.url}/v1/payment_intents/${id}/confirm`, { method: "POST", headers: { Authorization: "Bearer sk_test_site" }, body }))
        const before = yield* asked
        assert.strictEqual(yield* reopen(here), 1)
        assert.strictEqual((yield* charge(here))._tag, "Succeeded")
        assert.strictEqual(yield* asked, before)
        assert.strictEqual(yield* payments(here), 1)

        const other = chargeFor("never-comes", "2026-07", { paymentMethod: "pm_card_authenticationRequired" })
        assert.strictEqual((yield* charge(other))._tag, "RequiresAction")
        yield* reopen(other)
        assert.strictEqual((yield* charge(other))._tag, "RequiresAction")
        assert.strictEqual((yield* find(other)).attempt, 2)
        yield* reopen(other, "pm_card_visa")
        assert.strictEqual((yield* charge(other))._tag, "Succeeded")
        assert.strictEqual(yield* payments(other), 1)
      }).pipe(Effect.provide(world(database))), 120_000)
  })
}
