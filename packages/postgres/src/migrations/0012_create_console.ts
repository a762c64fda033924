/**
 * What an operator's console looks things up by, and what people and workers leave for it.
 *
 * The steps of a charge pay for its indexes, so that nothing here is made of columns or rows which a claim, attach or a payment change:
 * `unpaid` stays false at all three (as a generated column it would take a thirtieth of the writes). Charges in work are found by the
 * pages of their leases, the charge of a processor's object by the event that names it, and planned ones among those of their period.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const terms = (row: string) => `(${row}.amount_minor, ${row}.currency, ${row}.stripe_customer_id, ${row}.payment_method)`

const noteConflicts = `insert into purser.run_conflicts (run_id, line, charge_key, amount_minor, currency, stripe_customer_id, payment_method, seen_at)
  select r.run_id, r.line, r.charge_key, r.amount_minor, r.currency, r.stripe_customer_id, r.payment_method, purser.now()
  from purser.run_rows r join purser.charges c on c.charge_key = r.charge_key`

const statements: ReadonlyArray<string> = [
  `create index charges_customer on purser.charges (customer_id collate "C", billing_period, charge_key)`,
  `create index charges_unpaid on purser.charges (billing_period, planned_at, charge_key) where unpaid`,
  `create index charges_quarantine on purser.charges (charge_key) where quarantine is not null`,

  // Rows whose identity the ledger had with other terms when their run was planned. Neither side's terms ever change, so
  // that one look, in the act of planning, is enough.
  `create table purser.run_conflicts (
    run_id text not null,
    line integer not null,
    charge_key text collate "C" not null,
    amount_minor bigint not null,
    currency text not null,
    stripe_customer_id text not null,
    payment_method text,
    seen_at timestamptz not null,
    resolved_at timestamptz,
    actor text,
    reason text,
    primary key (run_id, line)
  )`,
  `create index run_conflicts_open on purser.run_conflicts (run_id, line) where resolved_at is null`,
  `create index run_conflicts_charge on purser.run_conflicts (charge_key)`,
  `create function purser.note_run_conflicts() returns trigger language plpgsql as $$
  begin
    ${noteConflicts} where r.run_id = new.run_id and ${terms("c")} is distinct from ${terms("r")}
      on conflict (run_id, line) do nothing;
    return null;
  end $$`,
  `create trigger runs_note_conflicts after update of planned_at on purser.runs for each row
    when (old.planned_at is null and new.planned_at is not null and new.present > 0) execute function purser.note_run_conflicts()`,
  `${noteConflicts} join purser.runs n on n.run_id = r.run_id and n.planned_at is not null and n.present > 0
    where ${terms("c")} is distinct from ${terms("r")}`,

  `create table purser.workers (
    worker text collate "C" primary key,
    host text not null,
    pid integer not null,
    serves text not null,
    version text not null,
    started_at timestamptz not null,
    beat_at timestamptz not null,
    stopped_at timestamptz
  ) with (fillfactor = 50)`,

  `create table purser.operator_acts (
    position bigint generated always as identity primary key,
    at timestamptz not null,
    actor text not null,
    act text not null,
    subject text not null,
    reason text not null,
    detail text
  )`,
  `create index operator_acts_subject on purser.operator_acts (subject, position)`,
  `create trigger operator_acts_append_only before update or delete or truncate on purser.operator_acts
    for each statement execute function purser.refuse_change()`
]

/** Applies the migration. */
export default Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
