/** The cap that is kept elsewhere: nothing is counted here, and nothing is promised about figures. */
import { Effect } from "effect"
import { capOf } from "../CapFigures.ts"
import type { SpendCap } from "../SpendCap.ts"
import { CapUnavailable, SpendCapError } from "../SpendCapError.ts"

const elsewhere = (operation: string, instead: string) =>
  Effect.fail(new SpendCapError({ reason: new CapUnavailable({ operation, detail: `the spend-cap proxy keeps the cap; use ${instead}` }), chargeKey: null }))

export const spendCapProxy: SpendCap["Service"] = {
  open: ({ billingPeriod, currency, expectedMinor, headroomPercent, namespace }) =>
    Effect.succeed({
      namespace, billingPeriod, currency, expectedMinor, headroomPercent, capMinor: capOf(expectedMinor, headroomPercent),
      reservedMinor: 0n, reservations: 0, closed: false
    }),
  reserve: () => Effect.void,
  reserveByForce: () => Effect.succeed(0n),
  release: () => Effect.void,
  raise: () => elsewhere("raise", "purser vault raise"),
  close: () => elsewhere("close", "purser vault revoke"),
  reopen: () => elsewhere("reopen", "purser vault create"),
  report: () => Effect.succeed([])
}
