/**
 * All that goes on in a world beside the charging, as one: it starts with the workers, calms down with the storm, comes to
 * rest, and is judged with the rest.
 */
import { type ChargePause, type ChargeRequest, DunningBook, type Ledger, ReconcileBook, RefundLedger, Sightings, type SpendCap, WebhookInbox } from "@purser/core"
import { type Context, Effect, Layer, type Scope } from "effect"
import { makeCases } from "./Cases.ts"
import { makeHooks } from "./Hooks.ts"
import type { Mail, OfficeShared } from "./Office.ts"
import { makeReconciling } from "./Reconciling.ts"
import { makeRefunding } from "./Refunding.ts"
import { makeRestored } from "./Restored.ts"
import { makePeople, type People } from "./People.ts"
import { isRetried } from "./Scenario.ts"
import type { Slot } from "./Slot.ts"
import type { Shared } from "./Worker.ts"

/** Who else is in the world. */
export interface Everybody {
  readonly slots: ReadonlyArray<Slot>
  /** All that was ever wanted is asked for again. */
  readonly askAgain: Effect.Effect<void, never, Scope.Scope>
  /** What clients were told is no news of what is recorded now, but for payments. */
  readonly forget: () => void
}

/** One thing that goes on. */
export interface Beside {
  readonly offices: ReadonlyArray<Slot>
  readonly start: Effect.Effect<void, never, Scope.Scope>
  /** Once everybody is there. */
  readonly begin?: (everybody: Everybody) => Effect.Effect<void, never, Scope.Scope>
  /** The storm is over: what its faults held back goes on. */
  readonly calm?: Effect.Effect<void>
  /** Nothing of it is open. */
  readonly isAtRest: Effect.Effect<boolean>
  /** What goes on for days after the storm; all other processes are given. */
  readonly later?: (slots: ReadonlyArray<Slot>) => Effect.Effect<void, never, Scope.Scope>
  /** Everything that is wrong with it, in a world that has come to rest. */
  readonly judge: Effect.Effect<ReadonlyArray<string>>
}

/** What a plan has for this world, built and not yet begun. */
export const makeBeside = Effect.fnUntraced(function*(
  shared: Shared, stores: Context.Context<Ledger | SpendCap | ChargePause>, requests: ReadonlyArray<ChargeRequest>, mail: Mail, people: People
): Effect.fn.Return<Beside, never, Scope.Scope> {
  const plan = shared.scenario.beside
  const books = yield* Layer.build(Layer.mergeAll(RefundLedger.layerMemory, DunningBook.layerMemory, ReconcileBook.layerMemory).pipe(
    Layer.provideMerge(Layer.mergeAll(Sightings.layerMemory, WebhookInbox.layerMemory)),
    Layer.provide(Layer.succeedContext(stores))
  ))
  const offices: OfficeShared = { ...shared, books, requests, mail }
  const all: Array<Beside> = []
  if (plan.hooks !== undefined) all.push(yield* makeHooks(offices, plan.hooks))
  if (plan.reconcile !== undefined) all.push(yield* makeReconciling(offices, plan.reconcile))
  if (plan.refunds !== undefined) all.push(yield* makeRefunding(offices, plan.refunds))
  if (plan.dunning !== undefined) all.push(yield* makeCases(offices, plan.dunning))
  if (isRetried(shared.scenario)) all.push(yield* makePeople(offices, people))
  if (plan.restore !== undefined && shared.backup !== undefined) all.push(yield* makeRestored(offices, shared.backup, plan.restore))
  return {
    offices: all.flatMap(({ offices }) => offices),
    start: Effect.forEach(all, ({ start }) => start, { discard: true }),
    begin: (everybody) => Effect.forEach(all, ({ begin }) => begin?.(everybody) ?? Effect.void, { discard: true }),
    calm: Effect.forEach(all, ({ calm }) => calm ?? Effect.void, { discard: true }),
    isAtRest: Effect.map(Effect.forEach(all, ({ isAtRest }) => isAtRest), (rest) => rest.every((one) => one)),
    later: (slots) => Effect.forEach(all, ({ later }) => later?.(slots) ?? Effect.void, { discard: true }),
    judge: Effect.map(Effect.forEach(all, ({ judge }) => judge), (found) => found.flat())
  }
})
