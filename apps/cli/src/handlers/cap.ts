/** `purser cap …`: the spend caps by hand. */
import { type BillingPeriod, type CapReport, type CapScope, DunningBook, Money, SpendCap } from "@purser/core"
import { Stores } from "@purser/purser"
import { Effect, Result } from "effect"
import { refused } from "../CommandFailed.ts"
import { note, out } from "../ui/Output.ts"
import { capShare } from "../ui/ChargeStates.ts"
import { table } from "../ui/table.ts"
import { parseHeadroom } from "./expectedTotals.ts"

/** Caps as JSON: amounts in minor units. */
export const capRows = (caps: ReadonlyArray<CapReport>) =>
  caps.map((cap) => ({
    ...cap,
    expectedMinor: Number(cap.expectedMinor),
    capMinor: Number(cap.capMinor),
    reservedMinor: Number(cap.reservedMinor)
  }))

/** Caps as a table. */
export const capTable = (caps: ReadonlyArray<CapReport>): string =>
  table(
    ["period", "currency", "expected", "cap", "used", "", "charges", ""],
    caps.map((cap) => {
      const money = (amount: bigint) => Money.formatMinor(amount, cap.currency)
      return [
        cap.billingPeriod, cap.currency, money(cap.expectedMinor), money(cap.capMinor), money(cap.reservedMinor), capShare(cap),
        String(cap.reservations), cap.closed ? "closed" : ""
      ]
    }),
    [2, 3, 4, 5, 6]
  )

interface Figures {
  readonly expectedTotal: string
  readonly headroom: string
}

const readFigures = Effect.fnUntraced(function*(scope: CapScope, given: Figures) {
  const money = Money.fromDecimal(given.expectedTotal, scope.currency, { maximumMinor: Number.MAX_SAFE_INTEGER })
  if (Result.isFailure(money)) return yield* refused(`--expected-total: ${money.failure.message}`)
  return { ...scope, expectedMinor: BigInt(money.success.amountMinor), headroomPercent: yield* parseHeadroom(given.headroom) }
})

/** Cases that found no room look again at once; the cap is as it was set, whatever comes of that. */
const wakeCases = (scope: CapScope) =>
  Effect.flatMap(DunningBook, (book) => book.roomMade(scope)).pipe(
    Effect.flatMap((cases) => cases === 0 ? Effect.void : note(`${cases} dunning ${cases === 1 ? "case that waits" : "cases that wait"} for room under it ${cases === 1 ? "looks" : "look"} again at once, where a runner is there`)),
    Effect.catch((error) => note(`dunning cases that wait for room look again by themselves: ${error.message}`))
  )

/** Opens a cap. */
export const openCap = (scope: CapScope, given: Figures) =>
  Effect.gen(function*() {
    const opened = yield* (yield* SpendCap).open(yield* readFigures(scope, given))
    if (opened.closed) return yield* refused(`the cap for ${scope.billingPeriod} ${scope.currency} is closed: purser cap reopen opens it again, with a reason`)
    yield* out(capTable([opened]))
    yield* wakeCases(scope)
  }).pipe(Effect.provide(Stores.layerConfig))

/** Sets other figures. */
export const raiseCap = (scope: CapScope, given: Figures & { readonly actor: string; readonly reason: string }) =>
  Effect.gen(function*() {
    const figures = yield* readFigures(scope, given)
    yield* out(capTable([yield* (yield* SpendCap).raise({ ...figures, actor: given.actor, reason: given.reason })]))
    yield* wakeCases(scope)
  }).pipe(Effect.provide(Stores.layerConfig))

/** Takes no more charges. */
export const closeCap = (scope: CapScope, act: { readonly actor: string; readonly reason?: string }) =>
  Effect.gen(function*() {
    yield* (yield* SpendCap).close(scope, act)
    yield* out(`the cap for ${scope.billingPeriod} ${scope.currency} is closed`)
  }).pipe(Effect.provide(Stores.layerConfig))

/** Takes charges for a closed period again. */
export const reopenCap = (scope: CapScope, given: { readonly actor: string; readonly reason: string }) =>
  Effect.gen(function*() {
    const { actor, reason } = given
    yield* out(capTable([yield* (yield* SpendCap).reopen({ ...scope, actor, reason })]))
    yield* wakeCases(scope)
  }).pipe(Effect.provide(Stores.layerConfig))

/** Shows the caps. */
export const showCaps = (period: BillingPeriod | undefined, json: boolean) =>
  Effect.gen(function*() {
    const caps = yield* (yield* SpendCap).report(period)
    yield* out(json ? JSON.stringify(capRows(caps)) : caps.length === 0 ? "no cap is open" : capTable(caps))
  }).pipe(Effect.provide(Stores.layerConfig))
