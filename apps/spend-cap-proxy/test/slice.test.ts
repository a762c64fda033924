import { assert, describe, it } from "@effect/vitest"
import { ProxyServer } from "@purser/spend-cap-proxy"
import { StripeSim } from "@purser/stripe-sim"
import { Effect } from "effect"
import { call, databases, makeVault, paid, refusal, sdk, used, world } from "./support/world.ts"

for (const [name, database] of databases) {
  describe(`a vault key on ${name}`, () => {
    it.live("charges with the real key until the cap, and is refused over it with Stripe's typed error", () =>
      Effect.gen(function*() {
        const proxy = yield* ProxyServer
        const { id, key } = yield* makeVault()
        const stripe = sdk(key, proxy)
        const params = { currency: "usd", customer: "cus_1", source: "tok_visa" } as const
        const first = yield* call(() => stripe.charges.create({ ...params, amount: 1000 }, { idempotencyKey: "a" }))
        assert.strictEqual(first.status, "succeeded")
        const again = yield* call(() => stripe.charges.create({ ...params, amount: 1000 }, { idempotencyKey: "a" }))
        assert.strictEqual(again.id, first.id)
        const error = yield* refusal(() => stripe.charges.create({ ...params, amount: 101 }, { idempotencyKey: "b" }))
        assert.strictEqual(error.type, "StripePermissionError")
        assert.strictEqual(error.code, "spend_cap_exceeded")
        yield* call(() => stripe.charges.create({ ...params, amount: 100 }, { idempotencyKey: "c" }))
        assert.deepStrictEqual(yield* used(id), { heldMinor: 0, paidMinor: 1100, payments: 2, calls: 2 })
        assert.deepStrictEqual(yield* paid, { payments: 2, amountMinor: 1100 })
        assert.strictEqual((yield* (yield* StripeSim).requests).length, 3)
      }).pipe(Effect.provide(world(database))))
  })
}
