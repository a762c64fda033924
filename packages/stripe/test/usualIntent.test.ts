/** The PaymentIntents that are told without a schema are those that the schema reads, and mean the same. */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Result, Schema } from "effect"
import { PaymentIntent, toPayment, usualIntent } from "../src/internal/answers.ts"

const oneOf = <A>(...values: ReadonlyArray<A>) =>
  Arbitrary.map(Arbitrary.schema(Schema.Int.pipe(Schema.check(Schema.isBetween({ minimum: 0, maximum: values.length - 1 })))), (index) => values[index]!)
/** As it should be, six times in seven. */
const usualOr = (usual: ReadonlyArray<unknown>, odd: ReadonlyArray<unknown>) =>
  Arbitrary.map(Arbitrary.all([oneOf(...usual), oneOf(...odd), oneOf(0, 1, 2, 3, 4, 5, 6)]), ([good, bad, dice]) => dice === 0 ? bad : good)

const references = usualOr(["x_1", null, undefined], ["", { id: "x_1" }, { id: "" }, {}, 7, ["x_1"]])
const amounts = usualOr([0, 1234, 2 ** 53 - 1], [1.5, 2 ** 53, "1234", null, undefined, true])
const intent = Arbitrary.map(
  Arbitrary.all([
    usualOr(["payment_intent"], ["charge", "", null, undefined]), usualOr(["pi_1"], ["", 7, null, undefined]),
    usualOr(PaymentIntent.fields.status.literals, ["requires_capture", "", null, undefined, 1]), amounts, amounts, usualOr(["usd"], ["", 840, null, undefined]),
    references, references, references,
    usualOr([{}, { charge_key: "k", generation: "2" }, { generation: "x" }], [{ charge_key: 7 }, { a: null }, null, undefined, [], ["a"], "text"]),
    usualOr([null, undefined], [{ code: "card_declined", charge: "ch_1" }, { message: 7 }, "declined"])
  ]),
  ([object, id, status, amount, amount_received, currency, customer, latest_charge, payment_method, metadata, last_payment_error]) =>
    ({ object, id, status, amount, amount_received, currency, customer, latest_charge, payment_method, metadata, last_payment_error, more: 1 })
)
const same = (text: string) => text
const read = Schema.decodeUnknownResult(PaymentIntent)

describe("what is told without the schema", () => {
  it.prop("is what the schema reads, of any answer", [intent], ([sent]) => {
    // As it comes: JSON has no undefined.
    const json: unknown = JSON.parse(JSON.stringify(sent))
    const told = usualIntent(json)
    if (told !== undefined) assert.deepStrictEqual(toPayment(told, same), toPayment(Result.getOrThrow(read(json)), same))
  }, { arbitrary: { runs: 2000 } })

  it.prop("is left to the schema where it is anything but an object", [oneOf<unknown>(null, undefined, 7, "payment_intent", [], [{}])], ([json]) => {
    assert.isUndefined(usualIntent(json))
  })

  it("is what Stripe usually sends", () => {
    const usual = {
      object: "payment_intent", id: "pi_1", status: "succeeded", amount: 1234, amount_received: 1234, currency: "usd", customer: "cus_1", latest_charge: "ch_1",
      payment_method: "pm_1", metadata: { charge_key: "k", generation: "1" }, last_payment_error: null, client_secret: "s"
    }
    assert.strictEqual<unknown>(usualIntent(usual), usual)
  })
})
