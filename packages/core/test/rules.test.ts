/** The cap's arithmetic and the rule of ids, at their edges. */
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { capOf, defaultHeadroomPercent, percentOf, safeFigure } from "../src/CapFigures.ts"
import { Currency, currencyRule } from "../src/Currency.ts"
import { idProblem } from "../src/internal/idProblem.ts"

describe("a cap", () => {
  it("is the floor of what is expected times its headroom, on integers of any size", () => {
    assert.deepStrictEqual([capOf(0n, 110), capOf(1n, 110), capOf(9n, 110), capOf(10n, 110), capOf(999n, 100), capOf(1n, 99)], [0n, 1n, 9n, 11n, 999n, 0n])
    assert.strictEqual(capOf(10n ** 30n + 9n, 110), 11n * 10n ** 29n + 9n)
  })

  it("leaves a tenth of headroom unless told otherwise", () => assert.strictEqual(capOf(1000n, defaultHeadroomPercent), 1100n))

  it("has its share cut, so that nothing is all before it is, and what is there at all is never nothing", () => {
    const shares = [[0, 3], [1, 3], [2, 3], [3, 3], [4, 3], [1, 101], [1, 100], [999, 1000], [0n, 1000], [0, 0], [5, 0n]] as const
    assert.deepStrictEqual(shares.map(([part, whole]) => percentOf(part, whole)), ["0", "33", "66", "100", "133", "< 1", "1", "99", "0", "–", "–"])
    assert.strictEqual(percentOf(10n ** 30n - 1n, 10n ** 30n), "99")
    assert.deepStrictEqual([percentOf(-1, 1000), percentOf(-1n, 100)], ["0", "-1"])
  })

  it("is told in errors as far as a number goes", () => {
    const largest = BigInt(Number.MAX_SAFE_INTEGER)
    assert.deepStrictEqual([0n, 1999n, largest - 1n, largest, largest + 1n, 10n ** 30n].map(safeFigure), [0, 1999, Number.MAX_SAFE_INTEGER - 1, ...Array.from({ length: 3 }, () => Number.MAX_SAFE_INTEGER)])
  })
})

describe("a currency", () => {
  it("that was branded by force, and is none, is called a bug", () => {
    assert.throws(() => currencyRule("xxx" as Currency), "Bug: xxx is branded as a currency but has no rule")
  })

  it("is refused in words where Stripe does not charge it, and where it is not in lower case", () => {
    const refusal = (code: string) => Result.match(Schema.decodeUnknownResult(Currency)(code), { onSuccess: String, onFailure: ({ message }) => message })
    assert.strictEqual(refusal("usd"), "usd")
    for (const code of ["xxx", "USD", ""]) assert.strictEqual(refusal(code), `"${code}" is not a currency that Stripe charges`)
  })
})

describe("an id", () => {
  it("may be any text that looks like no other", () => {
    for (const id of ["a", "!", "~", "a b", "cust_123", "a".repeat(255), "é", "é".repeat(127), "名".repeat(85), "\u{1f600}", "a\u00a0b", "a\u200bb"]) assert.isUndefined(idProblem(id), id)
  })

  it("is refused with the reason", () => {
    const refused = {
      "must not be empty": [""],
      "must not start or end with white space": [" ", " a", "a ", "\ta", "a\n", "\u00a0a", "a\u2003", "\ufeffa", "a\ufeff", "é "],
      "must not contain control characters or line breaks": ["a\u0000b", "a\nb", "a\u007fb", "a\u0085b", "\u0000", "\u007f"],
      "must not contain line separators or characters that change the direction of reading": ["a\u202eb", "\u202emca", "a\u200f", "a\u2066b", "a\u061cb", "a\u2028b"],
      "must be well-formed Unicode": ["\ud800", "a\udc00b"],
      "must not be longer than 255 bytes of UTF-8": ["a".repeat(256), "é".repeat(128), "名".repeat(86)]
    }
    for (const [problem, ids] of Object.entries(refused)) for (const id of ids) assert.strictEqual(idProblem(id), problem, JSON.stringify(id))
  })
})
