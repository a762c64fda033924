/**
 * The tables of the ledger, the spend cap and the run book. A migration that was published is never edited: a change is
 * a new file.
 *
 * What is indexed decides what a step costs. A charge is written two to four times within a second, so no index is made of
 * a column that these steps change, nor of rows that they put in or take out: `attach` and `settle` are heap-only updates. For that
 * half of each page is left free: a batch's rows lie side by side, and each of them is written a second time while the first
 * versions are still there.
 *
 * So leases have no index either. Whoever sets one writes the charge into a page of `lease_pages`, a whole batch into one page. When a page's
 * time has come, no later than the first of its leases ends, its charges are looked up and the page is gone: those whose lease
 * lasts go into a page of later, those whose lease ran out into one each (`ran_out`), and of the others, nearly all, nothing is left.
 * A lease that is prolonged needs no page, since it is in one that comes earlier. Nearly always the process that wrote a page settles all
 * its charges before, and drops it without a look.
 *
 * The trail is kept in pages too. A statement that moves charges appends one row with a line for each of them, where a row for each line, with an entry
 * in an index of charges and one in an index of positions, took a sixth of the database's time. Lines are found by the charge, which says in what pages
 * they are, and in the order in which they were written, by `page`: the first of a line's page is its page's number, which leaves room for all that a page may hold.
 *
 * What a column of these tables may hold is said by its type where it can be: the server reads a table's checks from the catalogue and prepares them at each statement that
 * writes it, 11 µs for each, and those of a type once for a connection.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Lines that a page of the trail may have. */
const eventPage = 1024

/** A line, as functions give it. */
const line = `charge_key text, "position" bigint, seq integer, at timestamptz, from_state text, to_state text, worker text, attempt integer, detail text, principal text`

/** What a charge takes of a cap. */
const room = `charge_key text collate "C" primary key,
    namespace text not null,
    billing_period text not null,
    currency text not null,
    attempt integer not null,
    amount_minor purser.not_negative not null`

const states = `'planned', 'claimed', 'attached', 'processing', 'requires_action', 'succeeded', 'declined', 'rejected', 'canceled'`

const statements: ReadonlyArray<string> = [
  `create domain purser.positive as bigint check (value > 0)`,
  `create domain purser.not_negative as bigint check (value >= 0)`,
  `create domain purser.percent as integer check (value >= 0)`,
  `create domain purser.charge_state as text check (value in (${states}))`,
  `create domain purser.charge_key as text collate "C" check (octet_length(value) = 32 and value = encode(decode(value, 'hex'), 'hex'))`,
  `create domain purser.page_keys as text[] collate "C" check (cardinality(value) between 1 and ${eventPage})`,
  // What has a fixed width and is never null comes first: what an update may have changed of an index is compared column by column, and one behind others of any width is looked for
  // from the row's begin each time. What a payment changes lies together and behind, since the log has all from the first change to the last.
  `create table purser.charges (
    planned_at timestamptz not null,
    amount_minor purser.positive not null,
    lease_epoch bigint not null default 0,
    generation integer not null default 1,
    attempt integer not null default 1,
    revision integer not null default 0,
    allow_future boolean not null default false,
    release_due boolean not null default false,
    dunning_due boolean not null default false,
    unpaid boolean not null default false,
    charge_key purser.charge_key primary key,
    billing_period text not null,
    customer_id text not null,
    namespace text not null,
    item text,
    currency text not null,
    stripe_customer_id text not null,
    payment_method text,
    state purser.charge_state not null,
    payment_intent_id text,
    attached_payment_method text,
    outcome_payment_intent_id text,
    charge_id text,
    received_minor bigint,
    outcome_code text,
    outcome_decline_code text,
    outcome_detail text,
    lease_worker text,
    lease_until timestamptz,
    first_claimed_at timestamptz,
    settled_at timestamptz,
    quarantine text,
    room_attempt integer,
    updated_at timestamptz not null,
    event_seq integer not null default 1,
    event_pages bigint[] not null default '{}'
  ) with (fillfactor = 50)`,
  `comment on column purser.charges.payment_method is 'as requested; null = the default method of the Stripe customer'`,
  `comment on column purser.charges.dunning_due is 'declined, and nobody has looked whether a dunning case is to follow'`,
  `comment on column purser.charges.unpaid is 'declined, rejected, canceled, or it requires an action'`,
  `comment on column purser.charges.event_pages is 'where the lines of its trail are, in their order'`,
  `comment on column purser.charges.lease_until is 'null where nothing is to be swept; for processing: when to look again'`,
  `comment on column purser.charges.room_attempt is 'the attempt for which it holds room under its cap since its first claim; null where it holds none, or by a row of cap_reservations'`,
  `create table purser.lease_pages (
    id bigint generated always as identity primary key,
    turn_at timestamptz not null,
    ran_out boolean not null default false,
    keys text[] collate "C" not null
  ) with (toast_tuple_target = 8160)`,
  `comment on table purser.lease_pages is 'charges with a lease, each in a page that is due no later than the lease ends; also charges that were settled since'`,
  // Without compression, which would take more than all the rest.
  `alter table purser.lease_pages alter column keys set storage external`,
  `create index lease_pages_turn on purser.lease_pages (ran_out, turn_at)`,
  `create index charges_release_due on purser.charges (charge_key) where release_due`,

  `create sequence purser.charge_positions increment ${eventPage} minvalue ${eventPage}`,
  // A transaction that has its id: see 0008_create_feed.
  `create function purser.next_event_page() returns bigint language sql volatile as $$
    select case when pg_current_xact_id() is not null then nextval('purser.charge_positions') end $$`,
  `create table purser.charge_event_pages (
    page bigint primary key,
    at timestamptz not null,
    keys purser.page_keys not null,
    seqs integer[] not null,
    from_states text[],
    to_states text[] not null,
    workers text[],
    attempts integer[] not null,
    details text[],
    principals text[]
  ) with (toast_tuple_target = 8160)`,
  `comment on table purser.charge_event_pages is 'the lines of the trail that one statement wrote; an array of one element says the same of all of them, null that none has it'`,
  ...["keys", "seqs", "from_states", "to_states", "workers", "attempts", "details", "principals"].map((column) =>
    `alter table purser.charge_event_pages alter column ${column} set storage external`),
  `alter sequence purser.charge_positions owned by purser.charge_event_pages.page`,
  `create function purser.nth(list anyarray, n integer) returns anyelement language sql immutable parallel safe as $$
    select list[case when cardinality(list) = 1 then 1 else n end] $$`,
  `create view purser.charge_events as
    select p.page + e.n - 1 as position, p.page, e.charge_key, case when cardinality(p.seqs) = 1 then p.seqs[1] else e.seq end as seq, p.at,
      ${["from_state", "to_state", "worker", "attempt", "detail", "principal"].map((column) => `case when cardinality(p.${column}s) = 1 then p.${column}s[1] else e.${column} end as ${column}`).join(", ")}
    from purser.charge_event_pages p
    cross join lateral unnest(p.keys, p.seqs, p.from_states, p.to_states, p.workers, p.attempts, p.details, p.principals)
      with ordinality as e(charge_key, seq, from_state, to_state, worker, attempt, detail, principal, n)`,
  `comment on view purser.charge_events is 'every line of the trail; those of one charge are found by purser.events_of'`,
  `create function purser.event_in(event_page bigint, key text) returns table (${line}) language sql stable as $$
    select key, p.page + p.n - 1, purser.nth(p.seqs, p.n), p.at, purser.nth(p.from_states, p.n), purser.nth(p.to_states, p.n), purser.nth(p.workers, p.n),
      purser.nth(p.attempts, p.n), purser.nth(p.details, p.n), purser.nth(p.principals, p.n)
    from (select e.*, array_position(e.keys, key) as n from purser.charge_event_pages e where e.page = event_page offset 0) p $$`,
  `create function purser.events_of(key text) returns table (${line}) language sql stable as $$
    select v.* from purser.charges c cross join lateral unnest(c.event_pages) as g(page) cross join lateral purser.event_in(g.page, key) v
    where c.charge_key = key $$`,
  `create table purser.charge_objects (
    object text not null,
    charge_key text collate "C" not null
  )`,
  `comment on table purser.charge_objects is 'which charge an object of the processor was made or found for; one that was attached and has the key of its charge in its name is not here'`,
  `create index charge_objects_object on purser.charge_objects using hash (object)`,
  `create function purser.refuse_change() returns trigger language plpgsql as $$
  begin
    raise exception '% is append-only', tg_table_name using errcode = 'restrict_violation';
  end $$`,
  `create trigger charge_event_pages_append_only before update or delete or truncate on purser.charge_event_pages
    for each statement execute function purser.refuse_change()`,

  `create table purser.caps (
    namespace text not null,
    billing_period text not null,
    currency text not null,
    expected_minor purser.not_negative not null,
    headroom_percent purser.percent not null,
    cap_minor purser.not_negative not null,
    reserved_minor purser.not_negative not null default 0,
    reservations purser.not_negative not null default 0,
    reserved_apart boolean not null default false,
    closed boolean not null default false,
    primary key (namespace, billing_period, currency)
  ) with (fillfactor = 20)`,
  `comment on column purser.caps.reserved_apart is 'whether room was ever reserved by itself, or there when the cap was opened: else no charge has a row of cap_reservations before its first claim'`,
  `create table purser.cap_reservations (
    ${room},
    reserved_at timestamptz not null
  )`,
  `comment on table purser.cap_reservations is 'room that was not taken with a first claim, which notes its own in its charge'`,
  `create view purser.held_room as
    select charge_key, namespace, billing_period, currency, attempt, amount_minor from purser.cap_reservations
    union all
    select charge_key, namespace, billing_period, currency, room_attempt, amount_minor from purser.charges where room_attempt is not null`,
  `comment on view purser.held_room is 'who holds room under a cap'`,
  `create table purser.cap_uncovered (
    ${room},
    noted_at timestamptz not null
  )`,
  `comment on table purser.cap_uncovered is 'payments that were found while no cap was open for them: the cap takes them in when it is opened'`,
  `create index cap_uncovered_scope on purser.cap_uncovered (namespace, billing_period, currency)`,
  `create table purser.cap_events (
    position bigint generated always as identity primary key,
    at timestamptz not null,
    namespace text not null,
    billing_period text not null,
    currency text not null,
    act text not null check (act in ('opened', 'raised', 'closed', 'forced')),
    expected_minor bigint,
    headroom_percent integer,
    cap_minor bigint not null,
    charge_key text,
    actor text,
    reason text
  )`,
  `create index cap_events_forced on purser.cap_events (charge_key) where act = 'forced'`,
  `create trigger cap_events_append_only before update or delete or truncate on purser.cap_events
    for each statement execute function purser.refuse_change()`,

  `create table purser.runs (
    run_id text primary key,
    source text not null,
    state text not null check (state in ('staging', 'planned', 'finished', 'stopped')),
    begun_at timestamptz not null,
    planned_at timestamptz,
    finished_at timestamptz,
    planned bigint,
    present bigint
  )`,
  `create table purser.run_rows (
    run_id text not null,
    line integer not null,
    charge_key text collate "C" not null,
    namespace text not null,
    customer_id text not null,
    billing_period text not null,
    item text,
    amount_minor bigint not null,
    currency text not null,
    stripe_customer_id text not null,
    payment_method text,
    allow_future boolean not null default false,
    settled_before boolean not null default false,
    primary key (run_id, line)
  )`
]

/** Applies the migration. */
export default Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
