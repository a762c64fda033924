/**
 * The failure table of `docs/protocol.md`, row by row, on both databases, with the real Stripe SDK against the simulator.
 * The simulator's own books are the judge. A crash leaves the row as it is; every later step is another worker's.
 */
import { assert, describe, it } from "@effect/vitest"
import { CardDeclined, ChargeError, ChargeGateway, type ChargeOutcome, Ledger, LedgerError, LedgerUnavailable, type PipelineError } from "@purser/core"
import { ChargePipeline, PipelineOptions, Sweeper, retryPolicy } from "@purser/engine"
import { StripeGateway } from "@purser/stripe"
import { type Fault, StripeSim } from "@purser/stripe-sim"
import { chargeFor } from "@purser/testkit"
import { type Duration, Effect, Exit, Fiber, Layer } from "effect"
import { databases } from "../src/Long.ts"
import { restoreBackup } from "../src/restoreBackup.ts"
import { advance, Crash, type GatewayLayer, openCap, payments, world } from "../src/World.ts"

const request = chargeFor("cust_1", "2026-07")
const charge = Effect.flatMap(ChargePipeline, (pipeline) => pipeline.charge(request))
const sweep = Effect.flatMap(Sweeper, (sweeper) => sweeper.sweepOnce)
const intents = (path: string) => ({ method: "POST" as const, path })
const confirmPath = "/v1/payment_intents/*/confirm"
const createPath = "/v1/payment_intents"

/** Someone dies at a place; the lease runs out; a sweeper goes on. */
const crashAt = (place: Parameters<Crash["Service"]["at"]>[0], later: Duration.Input = "1 minute") =>
  Effect.gen(function*() {
    yield* (yield* Crash).at(place)
    assert.isTrue(Exit.hasDies(yield* Effect.exit(charge)))
    yield* advance(later)
    yield* sweep
  })

const state = Effect.flatMap(Ledger, (ledger) => Effect.map(ledger.find(request.chargeKey), (row) => row?.state))
const tagOf = (effect: Effect.Effect<ChargeOutcome, PipelineError, ChargePipeline>) => Effect.map(effect, (outcome) => outcome._tag)
const addFault = (fault: Fault) => Effect.flatMap(StripeSim, (sim) => sim.faults.add(fault))
/** A worker that knows that its ledger was restored. */
const restored = ChargePipeline.layer.pipe(
  Layer.provide(PipelineOptions.layer({ worker: "restored", restorePointMs: 0, retry: retryPolicy({ attemptsMax: 6, backoffMs: 1, backoffMaxMs: 5 }) }))
)
const paysOnce = Effect.gen(function*() {
  assert.strictEqual(yield* payments(request), 1)
  assert.strictEqual(yield* state, "succeeded")
  assert.isTrue((yield* charge).alreadySettled)
  assert.strictEqual(yield* payments(request), 1)
})

for (const [name, database] of databases) {
  describe(`failure table on ${name}`, () => {
    const live = (title: string, test: Effect.Effect<void, unknown, Layer.Success<ReturnType<typeof world>>>) =>
      it.live(title, () => Effect.andThen(openCap(request), test).pipe(Effect.provide(world(database))))

    live("killed before create", Effect.andThen(crashAt("before-create"), paysOnce))
    live("killed after claim", Effect.andThen(crashAt("after-claim"), paysOnce))
    live("create's answer lost, within the key window", Effect.andThen(crashAt("after-create"), paysOnce))
    live("create's answer lost, days later", Effect.andThen(crashAt("after-create", "3 days"), paysOnce))
    live("killed between attach and confirm", Effect.andThen(crashAt("after-attach"), paysOnce))
    live("killed between attach and confirm, days later", Effect.andThen(crashAt("after-attach", "3 days"), paysOnce))
    live("confirm processed, answer lost", Effect.andThen(crashAt("after-confirm"), paysOnce))
    live("confirm processed, answer lost, days later", Effect.andThen(crashAt("after-confirm", "3 days"), paysOnce))
    live("killed after settle", Effect.andThen(crashAt("after-settle"), paysOnce))

    const faults: ReadonlyArray<readonly [string, Fault]> = [
      ["create reset before it is processed", { match: intents(createPath), action: { kind: "reset", at: "before" } }],
      ["create reset after it was processed", { match: intents(createPath), action: { kind: "reset", at: "after" } }],
      ["confirm lost on the way out", { match: intents(confirmPath), action: { kind: "reset", at: "before" } }],
      ["confirm reset after it was processed", { match: intents(confirmPath), action: { kind: "reset", at: "after" } }],
      ["a stored 500 on create, nothing made", { match: intents(createPath), action: { kind: "serverError", effect: "none", stored: true } }],
      ["a stored 500 on create, an intent made", { match: intents(createPath), action: { kind: "serverError", effect: "done", stored: true } }],
      ["a stored 500 on confirm, nothing paid", { match: intents(confirmPath), action: { kind: "serverError", effect: "none", stored: true } }],
      ["a stored 500 on confirm, paid", { match: intents(confirmPath), action: { kind: "serverError", effect: "done", stored: true } }],
      ["a 502 page on confirm, paid", { match: intents(confirmPath), action: { kind: "badGateway", effect: "done" } }],
      ["JSON without an error on confirm, paid", { match: intents(confirmPath), action: { kind: "foreignJson", status: 500, effect: "done" } }],
      ["409 on confirm", { match: intents(confirmPath), action: { kind: "keyInUse" } }],
      ["429 on create", { match: intents(createPath), action: { kind: "rateLimited" } }],
      ["429 on confirm", { match: intents(confirmPath), action: { kind: "rateLimited" } }],
      ["lock_timeout on confirm", { match: intents(confirmPath), action: { kind: "lockTimeout" } }]
    ]
    for (const [title, fault] of faults) {
      live(title, Effect.gen(function*() {
        yield* addFault(fault)
        assert.strictEqual(yield* tagOf(charge), "Succeeded")
        yield* paysOnce
      }))
    }

    live("a 500 that Stripe rolls forward later", Effect.gen(function*() {
      yield* addFault({ match: { ...intents(confirmPath), times: "always" }, action: { kind: "serverError", effect: "later", stored: true } })
      const error = yield* Effect.flip(charge)
      assert.strictEqual(error.outcome, "unknown")
      assert.strictEqual(yield* state, "attached")
      const sim = yield* StripeSim
      yield* sim.faults.clear
      yield* sim.rollForward
      yield* advance("1 minute")
      yield* sweep
      yield* paysOnce
    }))

    live("two workers create, with idempotency off: one attaches, the other's orphan is canceled", Effect.gen(function*() {
      const sim = yield* StripeSim
      yield* sim.setIdempotency(false)
      const held = yield* (yield* Crash).holdAt("after-create")
      const slow = yield* Effect.forkChild(Effect.exit(charge))
      yield* held.arrived
      yield* advance("1 minute")
      yield* sweep
      assert.strictEqual(yield* state, "succeeded")
      yield* held.go
      assert.isTrue(Exit.isFailure(yield* Fiber.join(slow)))
      const canceled = (yield* sim.requests).filter((entry) => entry.path.endsWith("/cancel"))
      assert.strictEqual(canceled.length, 1)
      yield* paysOnce
    }))

    live("two workers confirm at once, with idempotency off", Effect.gen(function*() {
      const sim = yield* StripeSim
      yield* sim.setIdempotency(false)
      const held = yield* (yield* Crash).holdAt("before-confirm")
      const slow = yield* Effect.forkChild(charge)
      yield* held.arrived
      yield* advance("1 minute")
      yield* sweep
      yield* held.go
      assert.strictEqual((yield* Fiber.join(slow))._tag, "Succeeded")
      yield* paysOnce
    }))

    live("a paused worker wakes after days and confirms", Effect.gen(function*() {
      const held = yield* (yield* Crash).holdAt("before-confirm")
      const paused = yield* Effect.forkChild(charge)
      yield* held.arrived
      yield* advance("5 days")
      yield* sweep
      assert.strictEqual(yield* payments(request), 1)
      yield* held.go
      assert.strictEqual((yield* Fiber.join(paused))._tag, "Succeeded")
      yield* paysOnce
    }))

    live("an intent canceled at Stripe: a new generation", Effect.gen(function*() {
      yield* (yield* Crash).at("after-attach")
      yield* Effect.exit(charge)
      const row = yield* (yield* Ledger).find(request.chargeKey)
      const gateway = yield* ChargeGateway
      yield* gateway.cancel({ chargeKey: request.chargeKey, request, generation: 1 }, row!.paymentIntentId!)
      yield* advance("1 minute")
      yield* sweep
      assert.strictEqual((yield* (yield* Ledger).find(request.chargeKey))?.generation, 2)
      yield* paysOnce
    }))

    live("an intent that another tool changed is quarantined and never confirmed", Effect.gen(function*() {
      yield* (yield* Crash).at("after-attach")
      yield* Effect.exit(charge)
      const id = (yield* (yield* Ledger).find(request.chargeKey))!.paymentIntentId!
      const { url } = yield* StripeSim
      yield* Effect.promise(() => fetch(`${url}/v1/payment_intents/${id}`, {
        method: "POST",
        headers: { authorization: "Bearer sk_test_other", "content-type": "application/x-www-form-urlencoded" },
        body: "amount=999"
      }))
      yield* advance("1 minute")
      yield* sweep
      assert.strictEqual(yield* payments(request), 0)
      const error = yield* Effect.flip(charge)
      assert.strictEqual(error.reason._tag, "ChargeQuarantined")
    }))

    it.live("the cap is refused: rejected, and Stripe hears nothing", () =>
      Effect.gen(function*() {
        yield* openCap(request, 100n)
        assert.strictEqual(yield* tagOf(charge), "Rejected")
        assert.strictEqual((yield* (yield* StripeSim).requests).length, 0)
        assert.strictEqual(yield* state, "rejected")
      }).pipe(Effect.provide(world(database))))

    // Of a one-call charge nothing is left but the charge itself: its key is forgotten by then, at Stripe and here.
    const gateways: ReadonlyArray<readonly [string, GatewayLayer]> = [
      ["PaymentIntents", StripeGateway.layerPaymentIntentsWith()],
      ["invoices", StripeGateway.layerInvoicesWith()],
      ["one-call charges", StripeGateway.layerChargesWith]
    ]
    for (const [paidBy, gateway] of gateways) {
      it.live(`the ledger is restored from an old backup, with ${paidBy}: the restore point makes it look first`, () =>
        Effect.gen(function*() {
          yield* openCap(request)
          assert.strictEqual(yield* tagOf(charge), "Succeeded")
          yield* restoreBackup()
          yield* advance("3 days")
          assert.strictEqual((yield* charge.pipe(Effect.provide(restored, { local: true })))._tag, "Succeeded")
          yield* paysOnce
        }).pipe(Effect.provide(world(database, {}, gateway))))
    }

    it.live("JSON of somebody else's with status 200 on an invoice's line: nothing was added, and the line is asked for again", () =>
      Effect.gen(function*() {
        yield* openCap(request)
        yield* addFault({ match: intents("/v1/invoiceitems"), action: { kind: "foreignJson", status: 200, effect: "none" } })
        assert.strictEqual(yield* tagOf(charge), "Succeeded")
        yield* paysOnce
      }).pipe(Effect.provide(world(database, {}, StripeGateway.layerInvoicesWith()))))

    it.live("the ledger is restored from before a second generation: the payment of that generation is adopted", () =>
      Effect.gen(function*() {
        yield* openCap(request)
        yield* (yield* Crash).at("after-attach")
        yield* Effect.exit(charge)
        const first = (yield* (yield* Ledger).find(request.chargeKey))!.paymentIntentId!
        yield* (yield* ChargeGateway).cancel({ chargeKey: request.chargeKey, request, generation: 1 }, first)
        yield* advance("1 minute")
        yield* sweep
        assert.strictEqual(yield* payments(request), 1)
        yield* restoreBackup()
        yield* advance("3 days")
        assert.strictEqual((yield* charge.pipe(Effect.provide(restored, { local: true })))._tag, "Succeeded")
        yield* paysOnce
      }).pipe(Effect.provide(world(database))))

    for (const operation of ["claim", "settle"] as const) {
      it.live(`the database is away for ${operation}`, () =>
        Effect.gen(function*() {
          yield* openCap(request)
          const ledger = yield* Ledger
          let down = true
          const failing = <A>(call: Effect.Effect<A, LedgerError>) =>
            Effect.suspend(() => down
              ? Effect.fail(new LedgerError({ reason: new LedgerUnavailable({ operation, detail: "down" }), chargeKey: request.chargeKey }))
              : call)
          const flaky = Layer.succeed(Ledger, {
            ...ledger,
            claim: (input, worker) => operation === "claim" ? failing(ledger.claim(input, worker)) : ledger.claim(input, worker),
            settle: (input) => operation === "settle" ? failing(ledger.settle(input)) : ledger.settle(input)
          })
          const pipeline = ChargePipeline.layer.pipe(
            Layer.provide(flaky),
            Layer.provide(PipelineOptions.layer({ worker: "flaky", retry: retryPolicy({ attemptsMax: 3, backoffMs: 1, backoffMaxMs: 2 }) }))
          )
          const error = yield* Effect.flip(charge.pipe(Effect.provide(Layer.orDie(pipeline), { local: true })))
          assert.strictEqual(error.reason._tag, "LedgerUnavailable")
          assert.strictEqual(yield* payments(request), operation === "claim" ? 0 : 1)
          down = false
          yield* advance("1 minute")
          if (operation === "claim") yield* charge
          else yield* sweep
          yield* paysOnce
        }).pipe(Effect.provide(world(database))))
    }

    live("the simulator is away, then comes back", Effect.gen(function*() {
      yield* addFault({ match: { path: "/v1/**", times: "always" }, action: { kind: "reset", at: "before" } })
      assert.strictEqual((yield* Effect.flip(charge)).outcome, "unknown")
      assert.strictEqual(yield* payments(request), 0)
      yield* (yield* StripeSim).faults.clear
      yield* advance("1 minute")
      yield* sweep
      yield* paysOnce
    }))

    it.live("a decline, then another card as the customer's default: the same intent, attempt 2, one payment", () =>
      Effect.gen(function*() {
        const declined = chargeFor("cust_2", "2026-07", { paymentMethod: null, stripeCustomerId: "cus_second" })
        yield* openCap(declined)
        const pipeline = yield* ChargePipeline
        const gateway = yield* ChargeGateway
        let card = "pm_card_visa_chargeDeclinedInsufficientFunds"
        const cards = ChargePipeline.layer.pipe(Layer.provide(Layer.succeed(ChargeGateway, { ...gateway, defaultPaymentMethod: () => Effect.succeed(card) })))
        const first = yield* Effect.flatMap(ChargePipeline, (p) => p.charge(declined)).pipe(Effect.provide(cards, { local: true }))
        assert.strictEqual(first._tag, "Declined")
        assert.isTrue((yield* pipeline.charge(declined)).alreadySettled)
        const ledger = yield* Ledger
        assert.strictEqual(yield* ledger.reopen({ chargeKeys: [declined.chargeKey], from: ["declined"], actor: "test", reason: "new card" }), 1)
        card = "pm_card_visa"
        const second = yield* Effect.flatMap(ChargePipeline, (p) => p.charge(declined)).pipe(Effect.provide(cards, { local: true }))
        assert.strictEqual(second._tag, "Succeeded")
        assert.strictEqual(yield* payments(declined), 1)
        const keys = (yield* (yield* StripeSim).requests).filter((entry) => entry.path.endsWith("/confirm")).map((entry) => entry.idempotencyKey)
        assert.deepStrictEqual(keys, [`${declined.chargeKey}:g1:confirm:1`, `${declined.chargeKey}:g1:confirm:2`])
      }).pipe(Effect.provide(world(database))))

    it.live("a permission taken away after an unknown confirm is no refusal of the charge", () =>
      Effect.gen(function*() {
        yield* openCap(request)
        yield* (yield* Crash).at("after-confirm")
        yield* Effect.exit(charge)
        yield* advance("1 minute")
        const gateway = yield* ChargeGateway
        const denied = new ChargeError({ reason: new CardDeclined({ code: "x", declineCode: null, detail: "x" }), chargeKey: null, requestId: null })
        assert.strictEqual(denied.outcome, "not_charged")
        const unreadable = ChargePipeline.layer.pipe(
          Layer.provide(Layer.succeed(ChargeGateway, { ...gateway, retrieve: () => Effect.fail(denied) })),
          Layer.provide(PipelineOptions.layer({ worker: "blind", retry: retryPolicy({ attemptsMax: 1, backoffMs: 1, backoffMaxMs: 5 }), handBackMs: 0 }))
        )
        const error = yield* Effect.flip(charge.pipe(Effect.provide(Layer.orDie(unreadable), { local: true })))
        assert.strictEqual(error.outcome, "unknown")
        assert.strictEqual(yield* state, "attached")
        yield* sweep
        yield* paysOnce
      }).pipe(Effect.provide(world(database))))
  })
}
