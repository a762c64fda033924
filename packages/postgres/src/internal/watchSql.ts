/**
 * The statements around webhooks and reconciliation: a row that comes to name a payment, rows by period, the inbox, and what was
 * seen at the processor. Times are the database's.
 */
import { firstPage, newPageAfter, same, withPage, writeEvents, writeObjects } from "./eventPages.ts"
import { recordColumns } from "./ledgerReads.ts"
import { writePage } from "./leasePages.ts"
import { takenColumns } from "./takeOverSql.ts"

const epochMs = (column: string) => `(extract(epoch from ${column}) * 1000)::float8`
const atMs = (parameter: string) => `to_timestamp(${parameter}::float8 / 1000)`

/**
 * key, namespace, customer, period, item, amount, currency, Stripe customer, method as requested, allow future, worker, object, method
 * as used, lease ms, revision, the key that it bills anew or null. A row without an object that nobody holds, or a new one, comes to name the object and waits for it.
 */
export const adopt = `with t as materialized (select purser.now() as now),
f as materialized (
  select c.charge_key, c.state as from_state from purser.charges c cross join t
  where c.charge_key = $1::text and c.payment_intent_id is null and c.quarantine is null
    and (c.state in ('planned', 'rejected', 'declined') or (c.state = 'claimed' and c.lease_until <= t.now))
    and (c.amount_minor, c.currency, c.stripe_customer_id) = ($6::bigint, $7::text, $8::text)
  for update of c
),
${newPageAfter("f")},
u as (
  update purser.charges c set state = 'processing', unpaid = false, payment_intent_id = $12::text, attached_payment_method = $13::text,
    attempt = c.attempt + case when f.from_state in ('rejected', 'declined') then 1 else 0 end,
    lease_worker = $11::text, lease_epoch = c.lease_epoch + 1, lease_until = t.now + $14::float8 * interval '1 millisecond',
    first_claimed_at = coalesce(c.first_claimed_at, t.now), outcome_payment_intent_id = $12::text, charge_id = null, received_minor = null,
    outcome_code = null, outcome_decline_code = null, outcome_detail = null, outcome_advice_code = null, next_attempt_at = null, settled_at = null, release_due = false,
    dunning_due = false, event_seq = c.event_seq + 1, event_pages = ${withPage}, updated_at = t.now
  from f, t where c.charge_key = f.charge_key
  returning c.*, f.from_state, t.now
),
n as (
  insert into purser.charges (charge_key, namespace, customer_id, billing_period, item, amount_minor, currency, stripe_customer_id,
    payment_method, allow_future, state, payment_intent_id, outcome_payment_intent_id, attached_payment_method, lease_worker, lease_epoch, lease_until, first_claimed_at,
    planned_at, updated_at, revision, revises, event_pages)
  select $1::text, $2::text, $3::text, $4::text, $5::text, $6::bigint, $7::text, $8::text, $9::text, $10::boolean, 'processing', $12::text, $12::text, $13::text,
    $11::text, 1, t.now + $14::float8 * interval '1 millisecond', t.now, t.now, t.now, $15::integer, $16::text, ${firstPage}
  from t where ($16::text is null or (exists (select 1 from purser.charges p where p.charge_key = $16::text and p.state = 'succeeded')
    and not exists (select 1 from purser.charges s where s.revises = $16::text)))
    and not exists (select 1 from purser.charges c where c.charge_key = $1::text)
  on conflict (charge_key) do nothing
  returning *, null::text as from_state, updated_at as now
),
w as (select * from u union all select * from n),
e as (${writeEvents("w", { from: "from_state", to: same("'processing'"), worker: "lease_worker", detail: "'paid at the processor as ' || payment_intent_id" })}),
b as (${writeObjects("w", "payment_intent_id")}),
g as (${writePage("w")})
select ${takenColumns("w")}
from w`

/** period, after key or an empty text, limit */
export const page = `select ${recordColumns}
from purser.charges where billing_period = $1::text and (planned_at, charge_key) > (
  case when $2::text = '' then '-infinity' else (select planned_at from purser.charges where charge_key = $2::text) end, $2::text)
order by planned_at, charge_key limit $3::integer`

/** Along the pages of the trail: the last one given is as good as the last one written. */
export const newestEvent = `select ${epochMs("at")} as at_ms from purser.charge_event_pages order by page desc limit 1`

/** period */
export const namespaces = `select distinct namespace from purser.charges where billing_period = $1::text`

/** id, type, created ms, account, subject, object */
export const receive = `insert into purser.webhook_events (event_id, type, created_at, account, subject, object_id, received_at, due_at)
values ($1::text, $2::text, ${atMs("$3")}, $4::text, $5::text, $6::text, purser.now(), purser.now())
on conflict (event_id) do update set deliveries = purser.webhook_events.deliveries + 1
returning deliveries`

const eventColumns = `w.event_id, w.type, ${epochMs("w.created_at")} as created_ms, w.account, w.subject, w.object_id`

/** limit, hold ms. By the rows' places, so that the table is not joined with the few that are taken. */
export const take = `update purser.webhook_events w set due_at = purser.now() + $2::float8 * interval '1 millisecond', tries = w.tries + 1
where w.ctid = any(array(
  select ctid from purser.webhook_events where due_at <= purser.now() order by due_at limit $1::integer for update skip locked))
returning ${eventColumns}, w.tries - 1 as tries, ${epochMs("w.received_at")} as received_ms`

/** id, verdict, detail */
export const finish = `update purser.webhook_events set verdict = $2::text, detail = $3::text, due_at = null where event_id = $1::text and verdict is null`

/** id, after ms, detail */
export const postpone = `update purser.webhook_events set due_at = purser.now() + $2::float8 * interval '1 millisecond', detail = $3::text
where event_id = $1::text and verdict is null`

/** limit */
export const recent = `select ${eventColumns}, w.deliveries, w.tries, ${epochMs("w.received_at")} as received_ms, w.verdict, w.detail
from purser.webhook_events w order by w.received_at desc, w.event_id desc limit $1::integer`

export const totals = `select verdict, count(*) as events from purser.webhook_events group by verdict order by verdict nulls first`

/** older than ms, limit */
export const purge = `delete from purser.webhook_events where ctid = any(array(
  select ctid from purser.webhook_events
  where received_at < purser.now() - $1::float8 * interval '1 millisecond' and verdict is not null
  order by received_at limit $2::integer))
returning event_id`

/** id, kind, key, intent, charge, amount, currency, status, reason, created ms */
export const note = `insert into purser.movements as m
  (id, kind, charge_key, payment_intent_id, charge_id, amount_minor, currency, status, reason, created_at, seen_at)
values ($1::text, $2::text, $3::text, $4::text, $5::text, $6::bigint, $7::text, $8::text, $9::text, ${atMs("$10")}, purser.now())
on conflict (id) do update set status = excluded.status, reason = excluded.reason, amount_minor = excluded.amount_minor,
  charge_id = coalesce(excluded.charge_id, m.charge_id), seen_at = excluded.seen_at`

/** key */
export const movements = `select id, kind, charge_key, payment_intent_id, charge_id, amount_minor, currency, status, reason, ${epochMs("created_at")} as created_ms
from purser.movements where charge_key = $1::text order by created_at, id`

/** id, reason, key, amount, currency, Stripe customer, status, detail */
export const list = `insert into purser.unknown_objects
  (id, reason, charge_key, amount_minor, currency, stripe_customer_id, status, detail, first_seen_at, last_seen_at)
values ($1::text, $2::text, $3::text, $4::bigint, $5::text, $6::text, $7::text, $8::text, purser.now(), purser.now())
on conflict (id) do update set reason = excluded.reason, charge_key = excluded.charge_key, amount_minor = excluded.amount_minor,
  currency = excluded.currency, stripe_customer_id = excluded.stripe_customer_id, status = excluded.status, detail = excluded.detail,
  last_seen_at = excluded.last_seen_at, resolved_at = null, resolution = null`

/** id, resolution */
export const unlist = `update purser.unknown_objects set resolved_at = purser.now(), resolution = $2::text where id = $1::text and resolved_at is null
returning id`

/** after id, limit */
export const unknown = `select id, reason, charge_key, amount_minor, currency, stripe_customer_id, status, detail,
  ${epochMs("first_seen_at")} as first_seen_ms, ${epochMs("last_seen_at")} as last_seen_ms
from purser.unknown_objects where resolved_at is null and id > $1::text order by id limit $2::integer`

/** book. Books that nobody came back to for a day are dropped. */
export const beginBook = `delete from purser.reconcile_objects where book_id = $1::text or booked_at < purser.now() - interval '1 day'`

/** book, ids, keys, objects */
export const addObjects = `insert into purser.reconcile_objects (book_id, id, charge_key, object, booked_at)
select distinct on (i.id) $1::text, i.id, i.charge_key, i.object, purser.now() from unnest($2::text[], $3::text[], $4::text[]) as i(id, charge_key, object)
on conflict (book_id, id) do update set charge_key = excluded.charge_key, object = excluded.object, booked_at = excluded.booked_at`

/** book, keys */
export const booked = `select object from purser.reconcile_objects where book_id = $1::text and charge_key = any($2::text[]) order by id`

/** book, after id, limit. Each of the page is probed; `object` is null where a row is there. */
export const withoutRow = `with p as materialized (
  select id, charge_key, object from purser.reconcile_objects where book_id = $1::text and id > $2::text order by id limit $3::integer
)
select p.id, case when c.charge_key is null then p.object end as object
from p left join lateral (select c.charge_key from purser.charges c where c.charge_key = p.charge_key offset 0) c on true
order by p.id`

/** book */
export const discardBook = `delete from purser.reconcile_objects where book_id = $1::text`
