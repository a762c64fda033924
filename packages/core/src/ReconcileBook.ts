/**
 * The contract of a reconciliation's scratch book: what the processor listed, kept outside of memory until it has been
 * compared with the ledger. It holds nothing that could not be listed again.
 */
import { Context, type Effect, Layer } from "effect"
import { makeReconcileBookMemory } from "./internal/reconcileBookMemory.ts"
import type { Ledger } from "./Ledger.ts"
import type { LedgerError } from "./LedgerError.ts"
import type { AccountPayment } from "./ProcessorAccount.ts"

/** A part of the book that was looked through. */
export interface BookPage {
  readonly objects: ReadonlyArray<AccountPayment>
  readonly next: string | undefined
}

/** The book. Every method needs nothing and fails with `LedgerError` only. */
export class ReconcileBook extends Context.Service<ReconcileBook, {
  /** Opens a book; what earlier reconciliations left behind a day ago or more is dropped. */
  readonly begin: (bookId: string) => Effect.Effect<void, LedgerError>
  /** Adds objects that bear a charge key; the same one again replaces the first. */
  readonly add: (bookId: string, objects: ReadonlyArray<AccountPayment>) => Effect.Effect<void, LedgerError>
  /** The objects of these charge keys. */
  readonly objects: (bookId: string, chargeKeys: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<AccountPayment>, LedgerError>
  /**
   * Looks at up to `limit` objects after `afterId`, in the order of their ids, and answers those whose charge key has no row in
   * the ledger. `next` is where to go on, and is undefined at the end.
   */
  readonly withoutRow: (bookId: string, afterId: string, limit: number) => Effect.Effect<BookPage, LedgerError>
  /** Closes the book and forgets it. */
  readonly discard: (bookId: string) => Effect.Effect<void, LedgerError>
}>()("@purser/core/ReconcileBook") {
  /** A book in memory, over the memory ledger. */
  static readonly layerMemory: Layer.Layer<ReconcileBook, never, Ledger> = Layer.effect(ReconcileBook, makeReconcileBookMemory)
}
