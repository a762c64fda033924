import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Equal, Result, Schema } from "effect"
import { ChargeRequest, chargeTerms, idProblem, readRequest } from "../src/index.ts"
import { anyText, id, isOpaqueId, oddNumber, oddText, oneOf, period, request, usualOr } from "./arbitraries.ts"

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

describe("what is read without the schema", () => {
  const decode = Schema.decodeUnknownResult(ChargeRequest)
  const absent = Symbol("absent")
  const orAbsent = (usual: unknown, odd: Arbitrary.Arbitrary<unknown>) => usualOr(oneOf(absent, usual), odd)
  const atLimit = oneOf<unknown>("x".repeat(255), "x".repeat(256), "é".repeat(127), "é".repeat(128), "a b", "a ", "\u00a0a", "a\u202eb", "\ud800", "", 7, null, undefined, absent)
  const idText = usualOr(id, usualOr(Arbitrary.schema(anyText), atLimit))
  const fields = {
    namespace: idText,
    customerId: idText,
    billingPeriod: usualOr(period, oneOf<unknown>("", " ", "July", "2026-13", "\ud800", 7, null, undefined, absent)),
    item: orAbsent("seat", oddText),
    revision: usualOr(oneOf(absent), oneOf<unknown>(0, 1, 1000, 1001, 1.5, "1", null, undefined)),
    amountMinor: usualOr(oneOf(1, 1900, 2 ** 53 - 1), oddNumber),
    currency: usualOr(oneOf("usd", "jpy", "isk"), oneOf<unknown>("USD", "xxx", "", "\u212awd", 7, null, undefined, absent)),
    stripeCustomerId: idText,
    paymentMethod: orAbsent("pm_1", atLimit),
    senderKey: orAbsent("key of a sender", oneOf<unknown>("", " ", "\ud800", "é".repeat(255), "x".repeat(256), 7, null, undefined)),
    allowFuture: orAbsent(true, oneOf<unknown>(false, null, "true", 1, undefined)),
    more: usualOr(oneOf(absent), oneOf<unknown>(1, null, undefined))
  }
  const names = Object.keys(fields)
  /** Plain objects, those that have their fields from another, and those without any. */
  const input = Arbitrary.map(
    Arbitrary.all([Arbitrary.all(Object.values(fields)), usualOr(oneOf("plain"), oneOf("below", "bare", "array", "read"))]),
    ([values, shape]): object => {
      const given = Object.fromEntries(names.map((name, index) => [name, values[index]]).filter(([, value]) => value !== absent))
      switch (shape) {
        case "below":
          return Object.create(given)
        case "bare":
          return Object.assign(Object.create(null), given)
        case "array":
          return Object.assign([], given)
        case "read":
          return Object.defineProperty({ ...given }, "customerId", { enumerable: true, get: () => given["customerId"] })
        default:
          return given
      }
    }
  )
  const hold = (given: unknown) => {
    const [fast, slow] = [readRequest(given), decode(given)]
    if (Result.isSuccess(fast) && Result.isSuccess(slow)) {
      assert.deepStrictEqual(fast.success, slow.success)
      assert.isTrue(Equal.equals(fast.success, slow.success))
      assert.strictEqual(Object.getPrototypeOf(fast.success), ChargeRequest.prototype)
      assert.deepStrictEqual(Object.keys(fast.success), Object.keys(slow.success))
      assert.strictEqual(fast.success.chargeKey, slow.success.chargeKey)
      return true
    }
    assert.isTrue(Result.isFailure(fast) && Result.isFailure(slow), `one refuses: ${JSON.stringify(given)}`)
    if (Result.isFailure(fast) && Result.isFailure(slow)) {
      assert.strictEqual(fast.failure.message, slow.failure.message)
      assert.strictEqual(fast.failure.constructor, slow.failure.constructor)
    }
    return false
  }

  it.prop("is what the schema reads, and what it refuses is refused in its words", [input], ([given]) => {
    hold(given)
  }, { arbitrary: { runs: 3000 } })

  it.prop("is what the schema reads, of requests that are all right", [request], ([charge]) => {
    assert.isTrue(hold({ ...charge }))
    assert.isTrue(hold(charge))
  })

  it.prop("is what was checked, where a second reading gives something else", [request], ([charge]) => {
    const readings = [charge.customerId, " "]
    const given = Object.defineProperty({ ...charge }, "customerId", { get: () => readings.shift() })
    assert.deepStrictEqual(Result.getOrThrow(readRequest(given)), charge)
  }, { arbitrary: { runs: 20 } })

  for (const odd of [undefined, null, "text", 7, [], () => 1]) {
    it(`refuses ${Array.isArray(odd) ? "an array" : String(odd)} in the schema's words`, () => assert.isFalse(hold(odd)))
  }
})
