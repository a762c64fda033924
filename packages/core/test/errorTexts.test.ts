/** What people read of an error is for people. */
import { assert, describe, it } from "@effect/vitest"
import { ChargeInProgress, RefundInProgress } from "../src/index.ts"

describe("a charge or a refund in other hands", () => {
  it("is said to be so for a whole number of seconds, whatever the store's clock leaves of the lease", () => {
    for (const [leaseLeftMs, text] of [[14_971.908, "15 s"], [5000, "5 s"], [0.4, "1 s"], [-3, "1 s"]] as const) {
      assert.strictEqual(new ChargeInProgress({ leaseLeftMs }).message, `another worker holds this charge for at most ${text} more`)
      assert.strictEqual(new RefundInProgress({ leaseLeftMs }).message, `another process holds this refund for at most ${text} more`)
    }
  })
})
