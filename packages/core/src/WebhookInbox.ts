/**
 * The contract of the durable inbox of webhook events: each event once, however often it is delivered, until it has been
 * dealt with. An event that is in here may be answered for; one that is not may not.
 */
import { Context, type Effect, Layer } from "effect"
import { makeWebhookInboxMemory } from "./internal/webhookInboxMemory.ts"
import type { LedgerError } from "./LedgerError.ts"
import type { WebhookEvent } from "./WebhookSource.ts"

/** What came of an event. */
export type WebhookVerdict =
  /** The ledger was moved by it. */
  | "settled"
  /** The ledger knew already, or the object has not changed in a way that matters. */
  | "unchanged"
  /** A worker holds the charge and will see for itself. */
  | "in_work"
  /** A dispute, or a refund that was made elsewhere, now shows on the row. */
  | "noted"
  /** The object is none of the ledger's; it is listed for reconciliation. */
  | "unknown_object"
  /** The object is not what the row says; the row waits for a person. */
  | "quarantined"
  /** Nothing that concerns charges, or another account's. */
  | "ignored"

/** An event that is to be dealt with. `tries` counts earlier ones. */
export interface DueEvent {
  readonly event: WebhookEvent
  readonly tries: number
}

/** One event as people see it. `verdict` is null while it waits. */
export interface InboxRecord {
  readonly event: WebhookEvent
  readonly deliveries: number
  readonly receivedMs: number
  readonly tries: number
  readonly verdict: WebhookVerdict | null
  readonly detail: string | null
}

/** How many events wait, and how many ended how. */
export interface InboxTotal {
  readonly verdict: WebhookVerdict | null
  readonly events: number
}

/** The inbox. Every method needs nothing and fails with `LedgerError` only. */
export class WebhookInbox extends Context.Service<WebhookInbox, {
  /** Keeps the event for good. False when it had come before: that delivery is counted and changes nothing else. */
  readonly receive: (event: WebhookEvent) => Effect.Effect<boolean, LedgerError>
  /** Takes up to `limit` events that are due, oldest first, for `holdMs`; others do not get them meanwhile. */
  readonly take: (limit: number, holdMs: number) => Effect.Effect<ReadonlyArray<DueEvent>, LedgerError>
  /** The event has been dealt with; the first verdict stands. */
  readonly finish: (eventId: string, verdict: WebhookVerdict, detail: string | null) => Effect.Effect<void, LedgerError>
  /** The event could not be dealt with; it is due again after `afterMs`. */
  readonly postpone: (eventId: string, afterMs: number, detail: string) => Effect.Effect<void, LedgerError>
  /** The newest events. */
  readonly recent: (limit: number) => Effect.Effect<ReadonlyArray<InboxRecord>, LedgerError>
  /** Counts by verdict. */
  readonly totals: Effect.Effect<ReadonlyArray<InboxTotal>, LedgerError>
  /** Forgets events that were dealt with and received before `olderThanMs` ago, up to `limit`; answers how many. */
  readonly purge: (olderThanMs: number, limit: number) => Effect.Effect<number, LedgerError>
}>()("@purser/core/WebhookInbox") {
  /** An inbox in memory, on Effect's clock. */
  static readonly layerMemory: Layer.Layer<WebhookInbox> = Layer.effect(WebhookInbox, makeWebhookInboxMemory)
}
