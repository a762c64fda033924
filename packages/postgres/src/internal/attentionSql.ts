/**
 * The statements about what waits for a person. Lists walk the small indexes of what is in work, quarantined or in
 * conflict; an act changes its row and writes the event of the charge in one statement.
 */
import { newPageAfter, same, withPage, writeEvents } from "./eventPages.ts"
import { chargesWithLease, writePage } from "./leasePages.ts"
import { lineColumns } from "./searchSql.ts"

const epochMs = (column: string) => `(extract(epoch from ${column}) * 1000)::float8`
const upTo = (from: string) => `(select count(*)::integer from (select 1 from ${from} limit $1::integer) x)`
/** Charges whose lease ran out and was not taken up again; `grace` leaves the sweepers their time. */
const lost = (grace: string) =>
  `${chargesWithLease(`p.ran_out or p.turn_at < purser.now() - ${grace}`)} c where c.lease_until < purser.now() - ${grace} and c.quarantine is null`

/** most, grace in ms */
export const counts = `select ${upTo(lost("$2::float8 * interval '1 millisecond'"))} as unresolved,
  ${upTo("purser.charges c where c.quarantine is not null")} as quarantined,
  ${upTo("purser.run_conflicts r where r.resolved_at is null")} as conflicts,
  ${upTo("purser.dead_letters")} as dead_letters,
  ${upTo("purser.unknown_objects o where o.resolved_at is null")} as unknown_objects`

/** grace in ms, limit. Of a charge's trail the last page alone is opened, which has its last line: one that nobody can decide comes to thousands. */
export const unresolved = `select ${lineColumns}, ${epochMs("c.lease_until")} as since_ms, coalesce(c.lease_worker, e.worker) as worker, e.detail as last_detail
from (select c.* from ${lost("$1::float8 * interval '1 millisecond'")} order by c.lease_until limit $2::integer) c
left join lateral purser.event_in(c.event_pages[cardinality(c.event_pages)], c.charge_key) e on true
order by c.lease_until`

/** after key, limit */
export const quarantined = `select ${lineColumns} from purser.charges c
where c.quarantine is not null and c.charge_key > $1::text order by c.charge_key limit $2::integer`

const conflictColumns = `${lineColumns}, r.run_id, r.line, coalesce(n.source, '') as source, ${epochMs("r.seen_at")} as seen_at_ms,
  r.times, ${epochMs("coalesce(r.last_at, r.seen_at)")} as last_at_ms, r.principal,
  r.amount_minor as file_amount_minor, r.currency as file_currency, r.stripe_customer_id as file_stripe_customer_id,
  r.payment_method as file_payment_method, c.payment_method as kept_payment_method, ${epochMs("r.resolved_at")} as resolved_at_ms`

/** after run, after line, limit */
export const conflicts = `select ${conflictColumns}
from (select * from purser.run_conflicts where resolved_at is null and (run_id, line) > ($1::text, $2::integer) order by run_id, line limit $3::integer) r
cross join lateral (select * from purser.charges c where c.charge_key = r.charge_key offset 0) c
left join purser.runs n on n.run_id = r.run_id
order by r.run_id, r.line`

/** key */
export const conflictsOf = `select ${conflictColumns} from purser.run_conflicts r
cross join lateral (select * from purser.charges c where c.charge_key = r.charge_key offset 0) c
left join purser.runs n on n.run_id = r.run_id
where r.charge_key = $1::text order by r.seen_at, r.run_id, r.line`

/** keys, amounts, currencies, Stripe customers, methods, principals, most. What is known counts; what is new is kept while there is room. */
export const noteConflicts = `with t as materialized (select purser.now() as now),
g as (
  select charge_key, amount_minor, currency, stripe_customer_id, payment_method, principal, count(*)::integer as times
  from unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[])
    as i(charge_key, amount_minor, currency, stripe_customer_id, payment_method, principal)
  group by 1, 2, 3, 4, 5, 6
),
u as (
  update purser.run_conflicts r set times = r.times + g.times, last_at = t.now, resolved_at = null from g, t
  where r.run_id = '' and r.charge_key = g.charge_key and r.amount_minor = g.amount_minor and r.currency = g.currency
    and r.stripe_customer_id = g.stripe_customer_id and r.payment_method is not distinct from g.payment_method
    and r.principal is not distinct from g.principal
  returning g.*
),
room as (select greatest(0, $7::integer - (select count(*) from (select 1 from purser.run_conflicts where run_id = '' limit $7::integer) x)) as free),
n as (
  select *, row_number() over (order by charge_key) as place from (select * from g except select * from u) new
)
insert into purser.run_conflicts (run_id, line, charge_key, amount_minor, currency, stripe_customer_id, payment_method, principal, seen_at, last_at, times)
select '', nextval('purser.request_conflicts')::integer, charge_key, amount_minor, currency, stripe_customer_id, payment_method, principal, t.now, t.now, times
from n cross join t cross join room where n.place <= room.free`

/** Dealt with, and not come again for a month. */
export const forgetConflicts = `delete from purser.run_conflicts where run_id = '' and resolved_at is not null and resolved_at < purser.now() - interval '30 days'`

const writeEvent = (detail: string) => writeEvents("u", { from: "state", to: "state", worker: same(null), detail })

/** run, line, actor, reason */
export const keepCharge = `with t as materialized (select purser.now() as now),
f as (
  update purser.run_conflicts r set resolved_at = t.now, actor = $3::text, reason = $4::text from t
  where r.run_id = $1::text and r.line = $2::integer and r.resolved_at is null
  returning r.charge_key, r.principal, t.now
),
h as materialized (select f.* from f join purser.charges c using (charge_key) for update of c),
${newPageAfter("h")},
u as (
  update purser.charges c set event_seq = c.event_seq + 1, event_pages = ${withPage}, updated_at = f.now from h f where c.charge_key = f.charge_key
  returning c.charge_key, c.event_seq, c.state, c.attempt, f.now, f.principal
),
e as (${
  writeEvent(`'the other terms of ' || case when $1::text = '' then 'a request' || coalesce(' by ' || principal, '') else 'run ' || $1::text || ', line ' || $2::integer end
    || ' were dropped by ' || $3::text || ': ' || $4::text`)
})
select charge_key from u`

/** key, actor, reason. Where the charge was in work it is due at once, under a new epoch: whoever held it has nothing more to say. */
export const endQuarantine = `with t as materialized (select purser.now() as now),
f as materialized (select c.charge_key from purser.charges c where c.charge_key = $1::text and c.quarantine is not null for update),
${newPageAfter("f")},
u as (
  update purser.charges c set quarantine = null, lease_worker = null, lease_epoch = c.lease_epoch + 1,
    lease_until = case when c.state in ('claimed', 'attached', 'processing') then t.now end, event_seq = c.event_seq + 1, event_pages = ${withPage},
    updated_at = t.now
  from f, t where c.charge_key = f.charge_key
  returning c.charge_key, c.event_seq, c.state, c.attempt, c.lease_until, t.now
),
e as (${writeEvent("'quarantine ended by ' || $2::text || ': ' || $3::text")}),
g as (${writePage("u")})
select charge_key from u`

/** key, actor, reason. What was handed back for later is due at once; what somebody has is left to them. */
export const hasten = `with t as materialized (select purser.now() as now),
f as materialized (
  select c.charge_key from purser.charges c
  where c.charge_key = $1::text and c.lease_worker is null and c.lease_until > (select now from t)
  for update
),
${newPageAfter("f")},
u as (
  update purser.charges c set lease_until = t.now, event_seq = c.event_seq + 1, event_pages = ${withPage}, updated_at = t.now
  from f, t where c.charge_key = f.charge_key
  returning c.charge_key, c.event_seq, c.state, c.attempt, c.lease_until, t.now
),
e as (${writeEvent("'to be gone on with at once, by ' || $2::text || ': ' || $3::text")}),
g as (${writePage("u")})
select charge_key from u`
