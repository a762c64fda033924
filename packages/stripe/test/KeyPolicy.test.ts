import { assert, describe, it } from "@effect/vitest"
import { keyProblem } from "@purser/stripe"
import { Redacted } from "effect"

const cases: ReadonlyArray<readonly [key: string, problem: string | undefined, allowed?: string | undefined]> = [
  ["rk_live_abc123", undefined],
  ["rk_test_abc123", undefined],
  ["sk_test_abc123", undefined],
  ["sk_live_abc123", "unrestricted"],
  ["vk_0123456789abcdef0123456789abcdef0123456789abcdef", undefined],
  ["vk_0123", "malformed", "malformed"],
  ["pk_live_abc123", "publishable", "publishable"],
  ["pk_test_abc123", "publishable", "publishable"],
  ["", "empty", "empty"],
  [" rk_test_abc", "white_space", "white_space"],
  ["rk_test_abc\n", "white_space", "white_space"],
  ["rk_test_", "malformed", "malformed"],
  ["rk_prod_abc", "malformed", "malformed"],
  ["sk_org_live_abc", "malformed", "malformed"],
  ["Bearer", "malformed", "malformed"],
  ["rk_test_abc\u0000", "malformed", "malformed"],
  ["rk_test_ключ", "malformed", "malformed"],
  ["RK_TEST_ABC", "malformed", "malformed"],
  [`rk_test_${"a".repeat(300)}`, "malformed", "malformed"]
]

describe("KeyPolicy", () => {
  for (const [key, problem, whenAllowed] of cases) {
    it(`${JSON.stringify(key.slice(0, 20))}: ${problem ?? "accepted"}`, () => {
      assert.strictEqual(keyProblem(Redacted.make(key), false), problem)
      assert.strictEqual(keyProblem(Redacted.make(key), true), whenAllowed)
    })
  }
})
