/**
 * The proxy's tables: vaults, what they hold and have spent, the keys that open them, the calls that used an idempotency
 * key, and the audit trail, which the database itself refuses to change.
 *
 * Cap, held room and duplicate guard belong to the vault, which is one period and currency; keys come and go. A period and
 * currency has one vault, unless another one was made apart on purpose.
 *
 * A hold belongs to a Stripe account ("" for the key's own). A hold is room under the cap for one payment: `held` while money may still move, `paid`, or `released` on evidence that
 * it never will; `open` counts its attempts whose outcome nobody knows. It is `doubtful` when Stripe answered one of them with a 5xx of its own: that
 * one may have paid and be forgotten, so that the next takes room of its own, in a hold that names this one as its `earlier_id`.
 *
 * A call is one idempotency key; `doubts` counts its attempts whose outcome nobody knows, `remembered` says that Stripe has been seen to repeat its
 * answer, and `refund_minor` is what the key has of the allowance for refunds.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create function purser.now() returns timestamptz language sql stable parallel safe return statement_timestamp()`
  yield* sql`create table purser.vaults (
    id text primary key,
    separate boolean not null,
    name text not null,
    billing_period text not null,
    currency text not null,
    expected_minor bigint not null check (expected_minor > 0),
    headroom_percent integer not null check (headroom_percent between 100 and 200),
    cap_minor bigint not null,
    held_minor bigint not null default 0,
    paid_minor bigint not null default 0,
    refunded_minor bigint not null default 0,
    payments bigint not null default 0,
    calls bigint not null default 0,
    max_calls bigint,
    max_per_charge_minor bigint,
    allow text[] not null,
    allow_pattern text[] not null,
    customers text[],
    duplicate_guard boolean not null,
    created_at timestamptz not null
  ) with (fillfactor = 20)`
  yield* sql`create unique index vaults_one on purser.vaults (billing_period, currency) where not separate`
  yield* sql`create table purser.vault_keys (
    key_hash text primary key,
    vault_id text not null references purser.vaults (id),
    hint text not null,
    expires_at timestamptz,
    revoked_at timestamptz,
    created_at timestamptz not null
  )`
  yield* sql`create index vault_keys_vault on purser.vault_keys (vault_id)`
  yield* sql`create table purser.kill_switch (one boolean primary key default true check (one), killed boolean not null, at timestamptz not null, reason text not null)`
  yield* sql`insert into purser.kill_switch (killed, at, reason) values (false, purser.now(), 'made')`
  // Holds and calls refer to no vault by a constraint: the one that writes them has the vault's row locked, no vault is ever
  // deleted, and the two checks would be a twelfth of a decision's time.
  yield* sql`create table purser.holds (
    id bigint generated always as identity primary key,
    vault_id text not null,
    kind text not null,
    account text not null,
    customer text,
    amount_minor bigint not null check (amount_minor > 0),
    state text not null check (state in ('held', 'paid', 'released')),
    intent_id text,
    object_id text,
    first_key text not null,
    request_body text,
    answer text,
    open integer not null default 1,
    doubtful boolean not null default false,
    earlier_id bigint,
    made_at timestamptz not null
  ) with (fillfactor = 80)`
  yield* sql`create unique index holds_intent on purser.holds (vault_id, intent_id) where intent_id is not null`
  // No state in the predicate: a hold changes its state once or twice, and no index should have to follow.
  yield* sql`create index holds_customer on purser.holds (vault_id, customer, account) where customer is not null`
  yield* sql`create table purser.calls (
    vault_id text not null,
    idempotency_key text not null,
    round integer not null,
    fingerprint text not null,
    route text not null,
    hold_id bigint,
    object_id text,
    stopped boolean not null default false,
    remembered boolean not null default false,
    refund_minor bigint,
    doubts integer not null,
    final boolean not null,
    first_at timestamptz not null,
    primary key (vault_id, idempotency_key, round)
  ) with (fillfactor = 80)`
  yield* sql`create index calls_hold on purser.calls (hold_id) where hold_id is not null`
  yield* sql`create table purser.audit (
    seq bigint generated always as identity primary key,
    at timestamptz not null,
    vault_id text,
    act text not null,
    decision bigint,
    method text,
    path text,
    amount_minor bigint,
    currency text,
    customer text,
    idempotency_key text,
    verdict text not null,
    code text,
    status integer,
    request_id text,
    detail text
  )`
  yield* sql`create index audit_vault on purser.audit (vault_id, seq)`
  yield* sql`create function purser.refuse_change() returns trigger language plpgsql as
    'begin raise exception ''the audit trail is append-only''; end'`
  yield* sql`create trigger append_only before update or delete or truncate on purser.audit for each statement execute function purser.refuse_change()`
})
