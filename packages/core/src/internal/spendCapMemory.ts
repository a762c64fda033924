/** The cap over two maps. Steps are synchronous, so that checking and taking room is one act. */
import { Effect } from "effect"
import { capOf, safeFigure } from "../CapFigures.ts"
import type { ChargeKey } from "../ChargeKey.ts"
import type { CapReport, CapScope, Reservation, SpendCap } from "../SpendCap.ts"
import { CapAlreadyOpen, CapClosed, CapExceeded, CapMissing, SpendCapError, type SpendCapErrorReason } from "../SpendCapError.ts"

interface Cap extends CapScope {
  expectedMinor: bigint
  headroomPercent: number
  closed: boolean
  reservedMinor: bigint
  reservations: number
}

const keyOf = (scope: CapScope) => JSON.stringify([scope.namespace, scope.billingPeriod, scope.currency])
const fail = (reason: SpendCapErrorReason, chargeKey: ChargeKey | null = null) => Effect.fail(new SpendCapError({ reason, chargeKey }))

export const makeSpendCapMemory: Effect.Effect<SpendCap["Service"]> = Effect.sync(() => {
  const caps = new Map<string, Cap>()
  const reservations = new Map<ChargeKey, { readonly cap: Cap; readonly amountMinor: bigint; attempt: number }>()

  /** Payments that were found while no cap was open for them. */
  const uncovered = new Map<ChargeKey, Reservation>()
  /** Payments that took a cap over its limit. */
  const forced = new Set<ChargeKey>()

  const report = (cap: Cap): CapReport => ({ ...cap, capMinor: capOf(cap.expectedMinor, cap.headroomPercent) })
  const missing = (scope: CapScope, chargeKey: ChargeKey | null = null) =>
    fail(new CapMissing({ billingPeriod: scope.billingPeriod, currency: scope.currency }), chargeKey)
  const hold = (cap: Cap, { amountMinor, attempt, chargeKey }: Reservation) => {
    cap.reservedMinor += BigInt(amountMinor)
    cap.reservations += 1
    reservations.set(chargeKey, { cap, amountMinor: BigInt(amountMinor), attempt })
  }
  /** True when the key holds room already; the reservation then belongs to the higher attempt. */
  const holds = ({ attempt, chargeKey }: Reservation) => {
    const found = reservations.get(chargeKey)
    if (found !== undefined) found.attempt = Math.max(found.attempt, attempt)
    return found !== undefined
  }

  return {
    open: (input) =>
      Effect.suspend(() => {
        const found = caps.get(keyOf(input))
        if (found === undefined) {
          const { billingPeriod, currency, expectedMinor, headroomPercent, namespace } = input
          const cap: Cap = {
            namespace, billingPeriod, currency, expectedMinor, headroomPercent, closed: false, reservedMinor: 0n, reservations: 0
          }
          caps.set(keyOf(input), cap)
          for (const late of [...uncovered.values()].filter((one) => keyOf(one) === keyOf(cap))) {
            uncovered.delete(late.chargeKey)
            hold(cap, late)
            if (cap.reservedMinor > report(cap).capMinor) forced.add(late.chargeKey)
          }
          return Effect.succeed(report(cap))
        }
        if (found.expectedMinor === input.expectedMinor && found.headroomPercent === input.headroomPercent) {
          return Effect.succeed(report(found))
        }
        return fail(
          new CapAlreadyOpen({
            billingPeriod: input.billingPeriod,
            currency: input.currency,
            capMinor: safeFigure(report(found).capMinor),
            requestedMinor: safeFigure(capOf(input.expectedMinor, input.headroomPercent))
          })
        )
      }),
    reserve: (input) =>
      Effect.suspend(() => {
        if (holds(input)) return Effect.void
        const cap = caps.get(keyOf(input))
        if (cap === undefined) return missing(input, input.chargeKey)
        if (cap.closed) {
          return fail(new CapClosed({ billingPeriod: input.billingPeriod, currency: input.currency }), input.chargeKey)
        }
        const { capMinor } = report(cap)
        if (cap.reservedMinor + BigInt(input.amountMinor) > capMinor) {
          return fail(
            new CapExceeded({
              billingPeriod: input.billingPeriod,
              currency: input.currency,
              capMinor: safeFigure(capMinor),
              reservedMinor: safeFigure(cap.reservedMinor),
              requestedMinor: input.amountMinor
            }),
            input.chargeKey
          )
        }
        hold(cap, input)
        return Effect.void
      }),
    reserveByForce: (input) =>
      Effect.suspend(() => {
        const cap = caps.get(keyOf(input))
        if (cap === undefined) {
          uncovered.set(input.chargeKey, input)
          return missing(input, input.chargeKey)
        }
        const isNew = !holds(input)
        if (isNew) hold(cap, input)
        const over = cap.reservedMinor - report(cap).capMinor
        if (isNew && over > 0n) forced.add(input.chargeKey)
        return Effect.succeed(forced.has(input.chargeKey) && over > 0n ? over : 0n)
      }),
    release: (chargeKey, attempt) =>
      Effect.sync(() => {
        const late = uncovered.get(chargeKey)
        if (late !== undefined && late.attempt <= attempt) uncovered.delete(chargeKey)
        const found = reservations.get(chargeKey)
        if (found === undefined || found.attempt > attempt) return
        reservations.delete(chargeKey)
        found.cap.reservedMinor -= found.amountMinor
        found.cap.reservations -= 1
      }),
    raise: (input) =>
      Effect.suspend(() => {
        const cap = caps.get(keyOf(input))
        if (cap === undefined) return missing(input)
        cap.expectedMinor = input.expectedMinor
        cap.headroomPercent = input.headroomPercent
        return Effect.succeed(report(cap))
      }),
    close: (scope) =>
      Effect.suspend(() => {
        const cap = caps.get(keyOf(scope))
        if (cap === undefined) return missing(scope)
        cap.closed = true
        return Effect.void
      }),
    reopen: (input) =>
      Effect.suspend(() => {
        const cap = caps.get(keyOf(input))
        if (cap === undefined) return missing(input)
        cap.closed = false
        return Effect.succeed(report(cap))
      }),
    report: (billingPeriod) =>
      Effect.sync(() => [...caps.values()].filter((cap) => billingPeriod === undefined || cap.billingPeriod === billingPeriod).map(report))
  }
})
