import { assert, describe, it } from "@effect/vitest"
import { ChargeRequest, chargeKeyOf, parseCurrency } from "@purser/core"
import { Arbitrary, Result, Schema } from "effect"
import { columns, type InputOptions } from "../../src/input/InputOptions.ts"
import { makeRowReader } from "../../src/input/RowReader.ts"

const cell = Schema.UndefinedOr(Schema.Union([
  Schema.String,
  Schema.Literals(["acme", " acme", "a\u0085b", "\ud800", "x".repeat(256), "é".repeat(127), "2026-07", "2026Q3", "12.50", "1250", "usd", "KWD", "base"])
]))
const likely = {
  customer_id: "acme", billing_period: "2026-07", amount: "12.50", amount_minor: undefined, currency: "usd",
  stripe_customer_id: "c", payment_method: undefined, item: undefined, namespace: undefined
}
const cells = Arbitrary.map(
  Arbitrary.array(Arbitrary.all([Arbitrary.schema(Schema.Literals(columns)), Arbitrary.schema(cell)]), { maxLength: 4 }),
  (changes) => ({ ...likely, ...Object.fromEntries(changes) })
)
const options = Schema.Struct({ periodLabels: Schema.Literals(["calendar", "opaque"]), maximumMinor: Schema.Literals([1000, 99_999_999]) })

describe("RowReader", () => {
  // The reader builds requests without the second check of their schema; this is what allows it to.
  it.prop("makes only requests that the request's own schema accepts", [cells, options], ([row, chosen]) => {
    const read = makeRowReader(chosen satisfies InputOptions)(7, row)
    if (Result.isFailure(read)) return
    const { chargeKey, line, request } = read.success
    assert.strictEqual(line, 7)
    assert.deepStrictEqual(Result.getOrThrow(Schema.decodeUnknownResult(ChargeRequest)({ ...request })), request)
    assert.strictEqual(chargeKey, chargeKeyOf(request))
    assert.strictEqual(request.currency, parseCurrency(row.currency ?? ""))
  }, { arbitrary: { runs: 1000 } })
})
