/**
 * The book of dunning cases, and the mark on a charge whose decline nobody has looked at yet.
 *
 * The mark is false wherever a charge is simply paid, and its index holds marked rows alone, so that the steps of such a
 * charge stay heap-only updates. What a case has seen of its charge is the number of the charge's last event. And customers
 * among what webhook events speak of: one that has another card.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements: ReadonlyArray<string> = [
  `create index charges_dunning_due on purser.charges (charge_key) where dunning_due`,

  `create table purser.dunning_cases (
    case_id text collate "C" primary key,
    charge_key text collate "C" not null,
    number integer not null check (number > 0),
    stripe_customer_id text not null,
    state text not null check (state in ('open', 'paid', 'new_method', 'canceled', 'given_up', 'left')),
    opened_attempt integer not null,
    opened_by text not null,
    reason text not null,
    opened_at timestamptz not null,
    goes_on_at timestamptz,
    closed_at timestamptz,
    closed_by text,
    detail text,
    workflow text not null default 'due' check (workflow in ('due', 'running', 'over')),
    step integer not null default 0,
    seen_seq integer not null default 0,
    offered_at timestamptz,
    offered_method text,
    offered_attempt integer,
    offered_by text,
    offered_reason text,
    unique (charge_key, number),
    check ((state = 'open') = (closed_at is null))
  )`,
  `create unique index dunning_cases_open on purser.dunning_cases (charge_key) where state = 'open'`,
  `create index dunning_cases_customer on purser.dunning_cases (stripe_customer_id) where state = 'open'`,
  `create index dunning_cases_due on purser.dunning_cases (case_id) where workflow = 'due'`,
  `create index dunning_cases_running on purser.dunning_cases (case_id) where workflow = 'running'`,
  `create index dunning_cases_opened on purser.dunning_cases (opened_at)`,

  `alter table purser.webhook_events drop constraint webhook_events_subject_check,
    add check (subject in ('payment', 'charge', 'refund', 'dispute', 'customer', 'other'))`
]

/** Applies the migration. */
export default Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
