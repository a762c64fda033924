/** What is expected of a run's totals where no person is asked: it opens no cap that nobody could have meant. */
import { periodHasEnded } from "@purser/core"
import { Clock, Effect } from "effect"
import type { CapDecision, RunCheck } from "./BillingRun.ts"
import { PeriodNotOver, RunError, TotalUnexpected } from "./RunError.ts"
import type { RunOptions } from "./RunReport.ts"

/** A total that nobody named keeps the cap that is open, or is expected as it stands in the rows. */
export const decideFor = (options: RunOptions) => (check: RunCheck): Effect.Effect<ReadonlyArray<CapDecision>, RunError> =>
  Effect.gen(function*() {
    const nowMs = yield* Clock.currentTimeMillis
    const { expected, headroomPercent } = options
    const same = (a: RunOptions["expected"][number], b: RunCheck["totals"][number]["total"]) =>
      a.namespace === b.namespace && a.billingPeriod === b.billingPeriod && a.currency === b.currency
    const stray = expected.find((one) => !check.totals.some(({ total }) => same(one, total)))
    if (stray !== undefined) return yield* new RunError({ reason: new TotalUnexpected({ ...stray, isInRows: false }) })
    const decisions: Array<CapDecision> = []
    for (const { cap, total } of check.totals) {
      const { billingPeriod, currency, namespace } = total
      if (!options.allowPeriods.includes(billingPeriod) && !periodHasEnded(billingPeriod, nowMs)) {
        return yield* new RunError({ reason: new PeriodNotOver({ billingPeriod }) })
      }
      const named = expected.find((one) => same(one, total))
      if (named === undefined && expected.length > 0 && cap === undefined) {
        return yield* new RunError({ reason: new TotalUnexpected({ billingPeriod, currency, isInRows: true }) })
      }
      const expectedMinor = named?.expectedMinor ?? (cap === undefined ? total.amountMinor : undefined)
      decisions.push({ scope: { namespace, billingPeriod, currency }, expected: expectedMinor === undefined ? undefined : { expectedMinor, headroomPercent } })
    }
    return decisions
  })
