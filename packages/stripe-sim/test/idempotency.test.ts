import { StripeSim } from "@purser/stripe-sim"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { arrived, call, intentForm, raw, refusal, sdk } from "./support.ts"

const intents = "/v1/payment_intents"

describe("idempotency keys", () => {
  it.effect("replay the first answer and say so", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const first = yield* raw(sim, intents, { body: intentForm(), key: "k1" })
      const again = yield* raw(sim, intents, { body: intentForm(), key: "k1" })
      assert.strictEqual(first.status, 200)
      assert.strictEqual(again.text, first.text)
      assert.strictEqual(first.headers["idempotent-replayed"], undefined)
      assert.strictEqual(again.headers["idempotent-replayed"], "true")
      assert.strictEqual(again.headers["original-request"], first.headers["request-id"])
      assert.notStrictEqual(again.headers["request-id"], first.headers["request-id"])
      assert.deepStrictEqual((yield* sim.requests).map((entry) => entry.replayed), [false, true])
    }))

  it.effect("replay the state of the first answer, not the state of now", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const first = yield* raw(sim, intents, { body: intentForm(), key: "k1" })
      yield* raw(sim, `${intents}/${first.json.id}/confirm`, { body: "off_session=true", key: "k2" })
      const again = yield* raw(sim, intents, { body: intentForm(), key: "k1" })
      assert.strictEqual(again.json.status, "requires_confirmation")
      assert.strictEqual(again.text, first.text)
    }))

  it.effect("take the same parameters in another order for the same", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const first = yield* raw(sim, intents, { body: "amount=100&currency=usd&metadata[a]=1&metadata[b]=2", key: "k" })
      const again = yield* raw(sim, intents, { body: "metadata%5Bb%5D=2&currency=usd&metadata[a]=1&amount=100", key: "k" })
      assert.strictEqual(again.json.id, first.json.id)
    }))

  it.effect("refuse other parameters and keep the first answer", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const first = yield* raw(sim, intents, { body: "amount=100&currency=usd", key: "k" })
      const other = yield* raw(sim, intents, { body: "amount=200&currency=usd", key: "k" })
      assert.strictEqual(other.status, 400)
      assert.strictEqual(other.json.error.type, "idempotency_error")
      assert.include(other.json.error.message, "the same parameters they were first used with")
      assert.include(other.json.error.message, "'k'")
      assert.strictEqual(other.headers["idempotent-replayed"], undefined)
      const again = yield* raw(sim, intents, { body: "amount=100&currency=usd", key: "k" })
      assert.strictEqual(again.json.id, first.json.id)
      const error = yield* refusal(() =>
        sdk(sim).paymentIntents.create({ amount: 300, currency: "usd" }, { idempotencyKey: "k" })
      )
      assert.strictEqual(error.type, "StripeIdempotencyError")
    }))

  it.effect("refuse another endpoint", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const first = yield* raw(sim, intents, { body: intentForm(), key: "k" })
      const other = yield* raw(sim, `${intents}/${first.json.id}/confirm`, { body: "off_session=true", key: "k" })
      assert.strictEqual(other.status, 400)
      assert.strictEqual(other.json.error.type, "idempotency_error")
      assert.include(other.json.error.message, `('${intents}/${first.json.id}/confirm' vs '${intents}')`)
      assert.strictEqual(yield* sim.payments("cus_1", ""), 0)
    }))

  it.effect("answer 409 while the first request runs, and are taken up when it has ended", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      yield* sim.faults.add({ action: { kind: "delay", at: "during", delayMs: 3_600_000 } })
      const running = yield* Effect.forkChild(raw(sim, intents, { body: intentForm(), key: "k" }))
      yield* arrived(sim, (entry) => entry.idempotencyKey === "k")
      const second = yield* raw(sim, intents, { body: intentForm(), key: "k" })
      assert.strictEqual(second.status, 409)
      assert.strictEqual(second.json.error.code, "idempotency_key_in_use")
      assert.strictEqual(second.json.error.type, "idempotency_error")
      yield* sim.faults.release
      const first = yield* Fiber.join(running)
      const third = yield* raw(sim, intents, { body: intentForm(), key: "k" })
      assert.strictEqual(third.json.id, first.json.id)
    }))

  it.effect("keep a decline: a card that was changed since does not change the replayed answer", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const created = yield* raw(sim, intents, {
        body: "amount=1999&currency=usd&payment_method=pm_card_chargeDeclined&allowed_payment_method_types[0]=card"
      })
      const path = `${intents}/${created.json.id}/confirm`
      const first = yield* raw(sim, path, { body: "off_session=true", key: "k" })
      assert.strictEqual(first.status, 402)
      yield* raw(sim, `${intents}/${created.json.id}`, { body: "payment_method=pm_card_visa" })
      const again = yield* raw(sim, path, { body: "off_session=true", key: "k" })
      assert.strictEqual(again.status, 402)
      assert.strictEqual(again.headers["idempotent-replayed"], "true")
      assert.strictEqual(again.text, first.text)
      assert.strictEqual((yield* raw(sim, path, { body: "off_session=true", key: "k2" })).status, 200)
    }))

  it.effect("keep a stored 500, and forget one that was not stored", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      yield* sim.faults.add(
        { match: { idempotencyKey: "kept" }, action: { kind: "serverError", effect: "none", stored: true } },
        { match: { idempotencyKey: "lost" }, action: { kind: "serverError", effect: "none", stored: false } }
      )
      const statuses = yield* Effect.forEach(["kept", "kept", "lost", "lost"], (key) =>
        Effect.map(raw(sim, intents, { body: intentForm(), key }), (answer) => answer.status))
      assert.deepStrictEqual(statuses, [500, 500, 500, 200])
    }))

  it.effect("do not keep a refused parameter, a 429 or a 409", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      assert.strictEqual((yield* raw(sim, intents, { body: "amount=1&currency=usd", key: "k" })).status, 400)
      assert.strictEqual((yield* raw(sim, intents, { body: "amount=100&currency=usd", key: "k" })).status, 200)
      yield* sim.faults.add({ action: { kind: "rateLimited" } }, { match: { nth: 2 }, action: { kind: "keyInUse" } })
      const statuses = yield* Effect.forEach([1, 2, 3], () =>
        Effect.map(raw(sim, intents, { body: intentForm(), key: "k2" }), (answer) => answer.status))
      assert.deepStrictEqual(statuses, [429, 409, 200])
    }))

  it.effect("live for a day on the virtual clock, then the request runs anew", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const first = yield* raw(sim, intents, { body: intentForm(), key: "k" })
      yield* sim.advanceClock("23 hours")
      assert.strictEqual((yield* raw(sim, intents, { body: intentForm(), key: "k" })).json.id, first.json.id)
      yield* sim.advanceClock("61 minutes")
      const later = yield* raw(sim, intents, { body: intentForm(), key: "k" })
      assert.notStrictEqual(later.json.id, first.json.id)
      assert.strictEqual(later.headers["idempotent-replayed"], undefined)
      assert.isAtLeast(later.json.created - first.json.created, 86_400)
    }))

  it.effect("change nothing for GET, and are refused over 255 characters", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const created = yield* raw(sim, intents, { body: intentForm(), key: "k" })
      const path = `${intents}/${created.json.id}`
      const before = yield* raw(sim, path, { key: "g" })
      yield* raw(sim, `${path}/cancel`, { body: "" })
      const after = yield* raw(sim, path, { key: "g" })
      assert.deepStrictEqual([before.json.status, after.json.status], ["requires_confirmation", "canceled"])
      assert.strictEqual((yield* raw(sim, intents, { body: intentForm(), key: "x".repeat(256) })).status, 400)
      assert.strictEqual((yield* raw(sim, intents, { body: intentForm(), key: "x".repeat(255) })).status, 200)
    }))

  it.effect("are one space for all keys of the account", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const first = yield* raw(sim, intents, { body: intentForm(), key: "k" })
      const again = yield* raw(sim, intents, {
        body: intentForm(),
        key: "k",
        headers: { authorization: `Basic ${Buffer.from("rk_test_other:").toString("base64")}` }
      })
      assert.strictEqual(again.json.id, first.json.id)
    }))

  it.effect("protect nothing when they are switched off", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make({ idempotency: false })
      const charge = () =>
        call(() => sdk(sim).charges.create({ amount: 500, currency: "usd", customer: "cus_9" }, { idempotencyKey: "k" }))
      yield* charge()
      yield* charge()
      assert.strictEqual(yield* sim.payments("cus_9", ""), 2)
      yield* sim.setIdempotency(true)
      yield* charge()
      yield* charge()
      assert.strictEqual(yield* sim.payments("cus_9", ""), 3)
    }))
})
