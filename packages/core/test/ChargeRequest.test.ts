import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { ChargeRequest, chargeTerms, idProblem } from "../src/index.ts"
import { anyText, isOpaqueId, request } from "./arbitraries.ts"

const allowed = ["a", "00042", "42", "x:1", "auth0|u1", "a b", "é", "e\u0301", "😀", "x".repeat(255), "é".repeat(127), "%3A", "zmq-billing", "a\u00a0b"]
const refused = ["", " a", "a ", "\ta", "a\u00a0", "\u2003a", "\ufeffa", "a\ufeff", "a\nb", "a\rb", "a\0b", "a\u007fb", "a\u0085b", "a\u202eb", "a\u2028b", "\ud800", "a\udc00b", "x".repeat(256), "é".repeat(128)]

describe("ids", () => {
  for (const id of allowed) it(`allows ${JSON.stringify(id.slice(0, 20))} of length ${id.length}`, () => assert.strictEqual(idProblem(id), undefined))
  for (const id of refused) it(`refuses ${JSON.stringify(id.slice(0, 20))} of length ${id.length}`, () => assert.isString(idProblem(id)))

  it.prop("are allowed exactly when they fit the written rule", [anyText], ([id]) => {
    const bytes = new TextEncoder().encode(id)
    const fits = id !== "" && bytes.length <= 255 && new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes) === id
      && id.trim() === id && ![...id].some((char) => char < " " || (char >= "\u007f" && char < "\u00a0"))
      && !/[\u061C\u200E\u200F\u2028\u2029\u202A-\u202E\u2066-\u2069]/u.test(id)
    assert.strictEqual(idProblem(id) === undefined, fits)
    assert.strictEqual(isOpaqueId(id), fits)
  }, { arbitrary: { runs: 500 } })
})

describe("ChargeRequest", () => {
  const decode = Schema.decodeUnknownResult(ChargeRequest)

  it.prop("survives its own encoding", [request], ([charge]) => {
    assert.deepStrictEqual(Result.getOrThrow(decode(JSON.parse(JSON.stringify(Schema.encodeSync(ChargeRequest)(charge))))), charge)
  })

  it.prop("refuses an id that breaks the rule, in whichever field", [request, Schema.Literals(["namespace", "customerId", "item", "stripeCustomerId", "paymentMethod"]), Schema.Literals(["", " a", "a\nb", "\ud800"])], ([charge, field, id]) => {
    assert.isTrue(Result.isFailure(decode({ ...charge, [field]: id })))
  })

  it.prop("refuses an amount that is no positive integer", [request, Schema.Literals([0, -1, 1.5, 2 ** 53])], ([charge, amountMinor]) => {
    assert.isTrue(Result.isFailure(decode({ ...charge, amountMinor })))
  })

  it.prop("has terms that name what a conflict would compare", [request], ([charge]) => {
    assert.deepStrictEqual(chargeTerms(charge), {
      amountMinor: charge.amountMinor, currency: charge.currency, stripeCustomerId: charge.stripeCustomerId, paymentMethod: charge.paymentMethod ?? null
    })
  })
})
