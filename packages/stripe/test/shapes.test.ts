/** What is written after a request of the SDK is what the SDK writes. */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Redacted, Schema } from "effect"
import { Stripe } from "stripe"
import { makeSdk, Prepared } from "../src/internal/sdk.ts"
import { shaped } from "../src/internal/shapes.ts"
import { secret } from "./support.ts"

const prepare = makeSdk(Stripe, {
  key: Redacted.make(secret), url: new URL("http://127.0.0.1:9"), account: undefined, timeoutMs: 1000, maxConnections: 1, allPerSecond: null, endpointPerSecond: null
})
const oneOf = <A>(...values: ReadonlyArray<A>) =>
  Arbitrary.map(Arbitrary.schema(Schema.Int.pipe(Schema.check(Schema.isBetween({ minimum: 0, maximum: values.length - 1 })))), (index) => values[index]!)
const words = oneOf("cus_1", "a.b-c_9", "2026-07", "", " ", "..", ".a", "a b", "a&b=c", "é", "a+b", "%41", "a[b]", "x@acct_1", "!*'()~", "807060504001", "a\nb", "😀")
const amounts = oneOf(0, 49, 1234, 2 ** 53 - 1, -1, 1.5, 1e21)

type Given = { readonly id: string; readonly key: string; readonly amount: number; readonly note: string; readonly item?: string }
const both = Arbitrary.map(
  Arbitrary.all([words, oneOf("k:g1:create", "k:g1:create:r1", "k"), amounts, words, oneOf(undefined, "seat", "a b")]),
  ([id, key, amount, note, item]): Given => ({ id, key, amount, note, ...(item === undefined ? {} : { item }) })
)
const ask = (stripe: Stripe, { amount, id, key, ...metadata }: Given) =>
  stripe.paymentIntents.capture(id, { amount_to_capture: amount, metadata, statement_descriptor: "fixed & done" }, { idempotencyKey: key })

/** Without what a library makes for each request by itself. */
const seen = (given: ReturnType<typeof prepare>) => {
  if (!(given instanceof Prepared)) return "refused"
  const { account, body, headers, method, path } = given
  return { account, body, method, path, headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])) }
}

describe("requests of one shape", () => {
  for (const account of [undefined, "acct_1"]) {
    it.prop(`are to the letter what the SDK writes, whatever their values: ${account ?? "the key's own account"}`, [both], ([values]) => {
      assert.deepStrictEqual(seen(prepare(shaped(ask, values), account)), seen(prepare((stripe) => ask(stripe, values), account)))
    }, { arbitrary: { runs: 1000 } })
  }

  it("ask the SDK once for all, and again for a value that is not plain", () => {
    let asked = 0
    const counted = (stripe: Stripe, values: Given) => {
      asked += 1
      return ask(stripe, values)
    }
    const values = { id: "pi_1", key: "k", amount: 1, note: "n" }
    for (let index = 0; index < 5; index++) prepare(shaped(counted, { ...values, id: `pi_${index}` }), undefined)
    assert.strictEqual(asked, 1)
    prepare(shaped(counted, { ...values, note: "a b" }), undefined)
    assert.strictEqual(asked, 2)
    prepare(shaped(counted, { ...values, item: "seat" }), undefined)
    assert.strictEqual(asked, 3)
  })

  it("are left to the SDK where a value has no place of its own", () => {
    let asked = 0
    const without = (stripe: Stripe, { id, key }: { readonly id: string; readonly key: string; readonly mode: string }) => {
      asked += 1
      return stripe.paymentIntents.capture(id, {}, { idempotencyKey: key })
    }
    for (const mode of ["a", "b"]) assert.instanceOf(prepare(shaped(without, { id: "pi_1", key: "k", mode }), undefined), Prepared)
    assert.strictEqual(asked, 3)
  })
})
