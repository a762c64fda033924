import { StripeSim } from "@purser/stripe-sim"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { raw } from "./support.ts"

const taken = undefined

const rows: ReadonlyArray<readonly [currency: string, amountMinor: number, code: string | undefined]> = [
  ["usd", 49, "amount_too_small"],
  ["usd", 50, taken],
  ["USD", 50, taken],
  ["gbp", 29, "amount_too_small"],
  ["gbp", 30, taken],
  ["jpy", 49, "amount_too_small"],
  ["jpy", 50, taken],
  ["huf", 17_499, "amount_too_small"],
  ["huf", 17_500, taken],
  ["usd", 99_999_999, taken],
  ["usd", 100_000_000, "amount_too_large"],
  ["idr", 2_147_483_648, taken],
  ["idr", 1_000_000_000_000, "amount_too_large"],
  ["ugx", 500, taken],
  ["ugx", 550, "parameter_invalid_integer"],
  ["isk", 10_000, taken],
  ["isk", 10_001, "parameter_invalid_integer"],
  ["kwd", 18_600, taken],
  ["kwd", 5_124, "parameter_invalid_integer"],
  ["bhd", 5_120, taken],
  // No minimum is published for it, so only the integer rule holds.
  ["vnd", 1, taken]
]

describe("amounts", () => {
  for (const path of ["/v1/payment_intents", "/v1/charges"]) {
    for (const [currency, amountMinor, code] of rows) {
      it.effect(`${path} ${code === taken ? "takes" : `refuses with ${code}`} ${amountMinor} ${currency}`, () =>
        Effect.gen(function*() {
          const sim = yield* StripeSim.make()
          const answer = yield* raw(sim, path, { body: `amount=${amountMinor}&currency=${currency}&customer=cus_1` })
          assert.strictEqual(answer.status, code === taken ? 200 : 400)
          assert.strictEqual(answer.json.error?.code, code)
          assert.strictEqual(answer.json.error?.param, code === taken ? undefined : "amount")
          if (code === taken) assert.deepInclude(answer.json, { amount: amountMinor, currency: currency.toLowerCase() })
        }))
    }
  }

  it.effect("the account's maximum can be moved", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make({ maximumMinor: 1_000 })
      const status = (amountMinor: number) =>
        Effect.map(raw(sim, "/v1/payment_intents", { body: `amount=${amountMinor}&currency=usd` }), (answer) => answer.status)
      assert.deepStrictEqual(yield* Effect.forEach([1_000, 1_001], status), [200, 400])
    }))
})
