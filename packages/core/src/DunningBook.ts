/**
 * The contract of the dunning book: one case for each declined charge that is followed up, where it stands, and how it
 * ended.
 *
 * It asks nobody for money and waits for nothing: who waits is a workflow of the engine, and what happened to the charge
 * stands in the ledger. A charge has one open case at the most.
 */
import { Context, type Effect, Layer } from "effect"
import type { ChargeKey } from "./ChargeKey.ts"
import { makeDunningBookMemory } from "./internal/dunningBookMemory.ts"
import type { ChargeRecord, ChargeState, Ledger } from "./Ledger.ts"
import type { LedgerError } from "./LedgerError.ts"
import type { CapScope } from "./SpendCap.ts"

/** How a case ended. */
export type DunningEnd =
  /** The charge is paid. */
  | "paid"
  /** Another payment method was tried and refused: what follows is another case. */
  | "new_method"
  /** By an explicit act. */
  | "canceled"
  /** Policy asks no more, and the time for a new method is over. */
  | "given_up"
  /** The charge is no matter of dunning any more: refused, canceled or quarantined, and left to a person. */
  | "left"

/** One case. */
export interface DunningCase {
  readonly caseId: string
  readonly chargeKey: ChargeKey
  /** Which case of this charge; the first is 1. */
  readonly number: number
  readonly stripeCustomerId: string
  readonly state: "open" | DunningEnd
  /** The attempt whose decline it follows up. */
  readonly openedAttempt: number
  readonly openedBy: string
  readonly reason: string
  readonly openedAtMs: number
  /** When it goes on by itself, in milliseconds of the Unix epoch on the store's clock; null where it goes on at once, and once it ended. */
  readonly goesOnAtMs: number | null
  readonly closedAtMs: number | null
  readonly closedBy: string | null
  /** How it ended, in words; of an open case, what keeps its attempt waiting. */
  readonly detail: string | null
}

/** A payment method that was offered to an open case, and is to be tried at once. */
export interface OfferedMethod {
  /** A Stripe id; null for the customer's default one, which has changed. */
  readonly paymentMethod: string | null
  /** The attempt of the charge when it was offered. */
  readonly attempt: number
  readonly actor: string
  readonly reason: string
}

/** A case beside its charge. */
export interface DunningView {
  readonly case: DunningCase
  readonly record: ChargeRecord
  /** Until the next attempt by policy, below zero when it is overdue; null where there is none. */
  readonly dueInMs: number | null
  /** How long the charge has stood as it stands; 0 while it is in work. */
  readonly settledForMs: number
  readonly offered: OfferedMethod | null
}

/** For which charges a customer's default method was read: those of some namespaces, and none that was tried with it. */
export interface DefaultMethodRead {
  readonly paymentMethod: string
  readonly namespaces: ReadonlyArray<string>
}

/** Who opens, cancels or offers, and why. */
export interface DunningAct {
  readonly actor: string
  readonly reason: string
}

/** What opening one case came to. `Present`: an open case was there. */
export type OpenCaseAnswer =
  | { readonly _tag: "Opened"; readonly case: DunningCase }
  | { readonly _tag: "Present"; readonly case: DunningCase }
  | { readonly _tag: "NotDeclined"; readonly state: ChargeState | null }

/** The book. Every method needs nothing and fails with `LedgerError` only. */
export class DunningBook extends Context.Service<DunningBook, {
  /** Opens a case for a declined charge, unless one is open. */
  readonly open: (chargeKey: ChargeKey, act: DunningAct) => Effect.Effect<OpenCaseAnswer, LedgerError>
  /**
   * Opens cases for declines that have none yet, up to `limit` at once, and passes over those that are older than
   * `maxAgeMs`; a decline is looked at once. Any number of processes may call it.
   */
  readonly openDue: (input: { readonly maxAgeMs: number; readonly limit: number } & DunningAct) => Effect.Effect<{ readonly opened: number; readonly passed: number }, LedgerError>
  /** Cases whose workflow has not been started. */
  readonly toStart: (limit: number) => Effect.Effect<ReadonlyArray<string>, LedgerError>
  /** Notes that a workflow has the case. */
  readonly started: (caseId: string) => Effect.Effect<void, LedgerError>
  /** Cases whose workflow was started and is not over, in the order of their ids. */
  readonly running: (afterId: string, limit: number) => Effect.Effect<ReadonlyArray<string>, LedgerError>
  /** The case as the workflow sees it at a step; notes the step, and that everything up to now was seen. */
  readonly look: (caseId: string, step: number) => Effect.Effect<DunningView | undefined, LedgerError>
  /** Notes how long the step waits, and for what where that is not plain, so that people know. An earlier note goes. */
  readonly waits: (caseId: string, step: number, forMs: number, note?: string) => Effect.Effect<void, LedgerError>
  /**
   * How many declined charges under a cap may be asked for again: `asked` have an open case, or a next attempt that policy has planned;
   * of `unseen` ones nobody has looked yet whether a case is to follow.
   */
  readonly followed: (scope: CapScope) => Effect.Effect<{ readonly asked: number; readonly unseen: number }, LedgerError>
  /** Running cases of which something was not seen yet: closed by a person, offered a method, with room that was made, or with a charge that has moved on; in the order of their ids. */
  readonly moved: (afterId: string, limit: number) => Effect.Effect<ReadonlyArray<{ readonly caseId: string; readonly step: number }>, LedgerError>
  /**
   * Ends an open case; false when it was not open. After `new_method` a charge that is declined is due for another case, and
   * after any other end its present decline has been followed up.
   */
  readonly close: (caseId: string, end: DunningEnd, act: DunningAct) => Effect.Effect<boolean, LedgerError>
  /** Notes that the workflow of a case is over. */
  readonly finished: (caseId: string) => Effect.Effect<void, LedgerError>
  /**
   * Offers a method to the open cases of a Stripe customer; answers how many take it. Without a method of its own, the
   * customer's default is meant, and charges that name a method are left alone; so are those that it was not `read` for.
   */
  readonly offer: (stripeCustomerId: string, paymentMethod: string | null, act: DunningAct, read?: DefaultMethodRead) => Effect.Effect<number, LedgerError>
  /** Open cases under a cap that wait for room under it look again at once; answers how many. */
  readonly roomMade: (scope: CapScope) => Effect.Effect<number, LedgerError>
  /** The open cases of a Stripe customer whose charges name no method. */
  readonly openOf: (stripeCustomerId: string) => Effect.Effect<ReadonlyArray<DunningView>, LedgerError>
  /** Cases with their charges, newest first. */
  readonly list: (input: { readonly onlyOpen: boolean; readonly limit: number }) => Effect.Effect<ReadonlyArray<DunningView>, LedgerError>
  /** The cases of one charge, newest first. */
  readonly casesOf: (chargeKey: ChargeKey) => Effect.Effect<ReadonlyArray<DunningView>, LedgerError>
}>()("@purser/core/DunningBook") {
  /** A book in memory, over the memory ledger. */
  static readonly layerMemory: Layer.Layer<DunningBook, never, Ledger> = Layer.effect(DunningBook, makeDunningBookMemory)
}
