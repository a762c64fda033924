/**
 * The tables of refunds, and what a charge remembers of declines and of other revisions of its identity.
 *
 * A refund is a row of its own; how much of a payment is left is summed under the lock of the charge's row. Of the new
 * columns of a charge only `next_attempt_at` and `revises` are indexed, with `revision` beside. The first two are null for a
 * charge that is simply paid, and its steps change none of them, so that they stay heap-only updates.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements: ReadonlyArray<string> = [
  `create table purser.refunds (
    refund_key text collate "C" primary key check (refund_key ~ '^[0-9a-f]{32}$'),
    charge_key text collate "C" not null,
    refund_id text collate "C" not null,
    billing_period text not null,
    currency text not null,
    amount_minor bigint not null check (amount_minor > 0),
    reason text check (reason in ('duplicate', 'fraudulent', 'requested_by_customer')),
    actor text not null,
    note text not null,
    state text not null check (state in ('requested', 'pending', 'succeeded', 'failed', 'already_refunded', 'refused')),
    attempt integer not null default 1,
    payment_intent_id text not null,
    charge_id text,
    processor_refund_id text,
    outcome_code text,
    outcome_detail text,
    lease_worker text,
    lease_epoch bigint not null default 0,
    lease_until timestamptz,
    requested_at timestamptz not null,
    settled_at timestamptz,
    event_seq integer not null default 1,
    updated_at timestamptz not null,
    unique (charge_key, refund_id)
  )`,
  `comment on column purser.refunds.lease_until is 'null where nothing is to be swept; for pending: when to look again'`,
  `create index refunds_lease on purser.refunds (lease_until) where lease_until is not null`,
  `create table purser.refund_events (
    refund_key text collate "C" not null,
    seq integer not null,
    at timestamptz not null,
    from_state text,
    to_state text not null,
    worker text,
    attempt integer not null,
    detail text,
    primary key (refund_key, seq)
  )`,
  `create trigger refund_events_append_only before update or delete or truncate on purser.refund_events
    for each statement execute function purser.refuse_change()`,

  `alter table purser.charges
    add column outcome_advice_code text,
    add column declined_charge_id text,
    add column next_attempt_at timestamptz,
    add column chosen_payment_method text,
    add column revises text collate "C"`,
  `comment on column purser.charges.declined_charge_id is 'the processor''s charge of the last decline that was recorded; it outlives a reopening'`,
  `comment on column purser.charges.next_attempt_at is 'set by policy for a soft decline; null where only a person may ask again'`,
  `comment on column purser.charges.chosen_payment_method is 'set by an explicit act for this and later attempts; the terms stay as requested'`,
  `create index charges_next_attempt on purser.charges (next_attempt_at) where next_attempt_at is not null`,
  `create function purser.is_revision(revises text, revision integer) returns boolean language plpgsql immutable as $$
  begin
    if revises is null or revision <= 0 then
      raise exception 'a charge of revision % revises %', revision, coalesce(revises, 'no other') using errcode = 'check_violation';
    end if;
    return true;
  end $$`,
  // Its second column is the check that a charge has either both or neither: one of the table would be prepared by each statement that writes a charge, and most write neither.
  `create unique index charges_revises on purser.charges (revises, purser.is_revision(revises, revision)) where revises is not null or revision <> 0`,
  `alter table purser.run_rows add column revision integer not null default 0`
]

/** Applies the migration. */
export default Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
