/**
 * The tables of what comes from the processor unasked: the inbox of webhook events, movements of money that the ledger did
 * not make, and objects that belong to no row. And rows by their period, which reconciliation reads in pages; the period
 * of a row and its time never change, so that its index costs the steps of a charge nothing, and new rows come to its end.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements: ReadonlyArray<string> = [
  `create index charges_period on purser.charges (billing_period, planned_at, charge_key)`,

  `create table purser.webhook_events (
    event_id text collate "C" primary key,
    type text not null,
    created_at timestamptz not null,
    account text,
    subject text not null check (subject in ('payment', 'charge', 'refund', 'dispute', 'other')),
    object_id text,
    received_at timestamptz not null,
    deliveries integer not null default 1,
    tries integer not null default 0,
    due_at timestamptz,
    verdict text check (verdict in ('settled', 'unchanged', 'in_work', 'noted', 'unknown_object', 'quarantined', 'ignored')),
    detail text,
    check ((due_at is null) = (verdict is not null))
  )`,
  `comment on column purser.webhook_events.due_at is 'null once it was dealt with; else when it is to be taken up'`,
  `create index webhook_events_due on purser.webhook_events (due_at) where due_at is not null`,
  `create index webhook_events_received on purser.webhook_events (received_at)`,

  `create table purser.movements (
    id text collate "C" primary key,
    kind text not null check (kind in ('refund', 'dispute')),
    charge_key text collate "C" not null,
    payment_intent_id text,
    amount_minor bigint not null,
    currency text not null,
    status text not null,
    reason text,
    created_at timestamptz not null,
    seen_at timestamptz not null
  )`,
  `create index movements_charge on purser.movements (charge_key)`,

  `create table purser.unknown_objects (
    id text collate "C" primary key,
    reason text not null check (reason in ('missing_here', 'not_attached', 'foreign', 'missing_there')),
    charge_key text,
    amount_minor bigint,
    currency text,
    stripe_customer_id text,
    status text,
    detail text,
    first_seen_at timestamptz not null,
    last_seen_at timestamptz not null,
    resolved_at timestamptz,
    resolution text
  )`,
  `create index unknown_objects_open on purser.unknown_objects (id) where resolved_at is null`,

  `create unlogged table purser.reconcile_objects (
    book_id text not null,
    id text collate "C" not null,
    charge_key text collate "C" not null,
    object text not null,
    booked_at timestamptz not null,
    primary key (book_id, id)
  )`,
  `create index reconcile_objects_key on purser.reconcile_objects (book_id, charge_key)`
]

/** Applies the migration. */
export default Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
