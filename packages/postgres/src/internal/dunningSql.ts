/** The statements of the dunning book. Each probes or walks an index that holds what is open, due or running and nothing else. */
import { recordColumns } from "./ledgerReads.ts"

const epochMs = (column: string) => `(extract(epoch from ${column}) * 1000)::float8`

/** A case in columns that no column of a charge is named like. `d` must be in scope. */
const caseColumns = `d.case_id, d.number as case_number, d.charge_key as case_key, d.stripe_customer_id as case_customer, d.state as case_state,
  d.opened_attempt, d.opened_by, d.reason as case_reason, ${epochMs("d.opened_at")} as opened_at_ms,
  case when d.state = 'open' then ${epochMs("d.goes_on_at")} end as goes_on_at_ms, ${epochMs("d.closed_at")} as closed_at_ms, d.closed_by,
  d.detail as case_detail, d.offered_at is not null as is_offered, d.offered_method, d.offered_attempt, d.offered_by, d.offered_reason`

/** Views of the cases that `v` holds. */
const views = `select v.*, ${recordColumns}, ${epochMs("next_attempt_at - purser.now()")} as due_in_ms,
  coalesce(${epochMs("purser.now() - settled_at")}, 0) as settled_for_ms
from v join purser.charges c on c.charge_key = v.case_key`

const insertCases = (from: string, actor: string, reason: string) =>
  `insert into purser.dunning_cases (case_id, charge_key, number, stripe_customer_id, state, opened_attempt, opened_by, reason, opened_at)
  select f.charge_key || '.' || k.number, f.charge_key, k.number, f.stripe_customer_id, 'open', f.attempt, ${actor}, ${reason}, purser.now()
  from ${from} cross join lateral (select coalesce(max(o.number), 0) + 1 as number from purser.dunning_cases o where o.charge_key = f.charge_key) k
  on conflict do nothing`

/** key, actor, reason. The row is held, so that of two who open a case for it one does. */
export const open = `with f as materialized (
  select c.charge_key, c.stripe_customer_id, c.attempt from purser.charges c
  where c.charge_key = $1::text and c.state = 'declined' and c.quarantine is null for update
),
m as (update purser.charges c set dunning_due = false from f where c.charge_key = f.charge_key and c.dunning_due),
d as (${insertCases("f", "$2::text", "$3::text")} returning *)
select ${caseColumns} from d`

/** key */
export const openCase = `select ${caseColumns} from purser.dunning_cases d where d.charge_key = $1::text and d.state = 'open'`

/** actor, reason, age ms, limit */
export const openDue = `with f as materialized (
  select c.charge_key, c.stripe_customer_id, c.attempt, c.quarantine is null and c.settled_at >= purser.now() - $3::float8 * interval '1 millisecond' as is_new
  from purser.charges c where c.dunning_due order by c.charge_key limit $4::integer for update skip locked
),
m as (update purser.charges c set dunning_due = false from f where c.charge_key = f.charge_key returning c.charge_key),
d as (${insertCases("(select * from f where f.is_new) f", "$1::text", "$2::text")} returning case_id)
select (select count(*) from d)::integer as opened, (select count(*) from m)::integer as looked_at`

/** limit */
export const toStart = `select d.case_id from purser.dunning_cases d where d.workflow = 'due' order by d.case_id limit $1::integer`

/** case */
export const started = `update purser.dunning_cases set workflow = 'running' where case_id = $1::text and workflow = 'due'`

/** after, limit */
export const running = `select d.case_id from purser.dunning_cases d where d.workflow = 'running' and d.case_id > $1::text order by d.case_id limit $2::integer`

/** case, step. Read in the statement that notes what was read. */
export const look = `with v as (
  update purser.dunning_cases d set step = $2::integer, seen_seq = c.event_seq, goes_on_at = coalesce(d.goes_on_at, purser.now())
  from purser.charges c where d.case_id = $1::text and c.charge_key = d.charge_key
  returning ${caseColumns}
)
${views}`

/** case, step, ms, note or null. How a case ended is not written over; what nobody has seen yet ends the wait before it begins. */
export const waits = `update purser.dunning_cases set goes_on_at = purser.now() + $3::float8 * interval '1 millisecond',
  detail = case when state = 'open' then $4::text else detail end
where case_id = $1::text and step = $2::integer and goes_on_at is not null`

const inScope = `c.namespace = $1::text and c.billing_period = $2::text and c.currency = $3::text`

/** namespace, period, currency */
export const followed = `with asked as (
  select d.charge_key from purser.dunning_cases d cross join lateral (select * from purser.charges c where c.charge_key = d.charge_key offset 0) c
  where d.state = 'open' and ${inScope}
  union
  select c.charge_key from purser.charges c where c.next_attempt_at is not null and c.state = 'declined' and ${inScope}
)
select (select count(*) from asked)::integer as asked, (
  select count(*) from purser.charges c where c.dunning_due and c.state = 'declined' and c.quarantine is null and ${inScope}
    and not exists (select 1 from asked where asked.charge_key = c.charge_key)
)::integer as unseen`

/** after, limit. A case goes on at no time once something has happened that its workflow has not seen. */
export const moved = `select d.case_id, d.step
from purser.dunning_cases d cross join lateral (select c.event_seq, c.state from purser.charges c where c.charge_key = d.charge_key offset 0) c
where d.workflow = 'running' and d.case_id > $1::text and d.step > 0
  and (d.state <> 'open' or d.goes_on_at is null
    or (c.event_seq <> d.seen_seq and c.state not in ('planned', 'claimed', 'attached', 'processing')))
order by d.case_id limit $2::integer`

/** case, end, actor, reason */
export const close = `with u as (
  update purser.dunning_cases set state = $2::text, closed_at = purser.now(), closed_by = $3::text, detail = $4::text, goes_on_at = null, offered_at = null
  where case_id = $1::text and state = 'open'
  returning case_id, charge_key
),
m as (
  update purser.charges c set dunning_due = ($2::text = 'new_method' and c.state = 'declined') from u
  where c.charge_key = u.charge_key and c.dunning_due <> ($2::text = 'new_method' and c.state = 'declined')
)
select case_id from u`

/** case */
export const finished = `update purser.dunning_cases set workflow = 'over' where case_id = $1::text`

/** Stripe customer, method or null, actor, reason, method that was read or null, for which namespaces */
export const offer = `with f as materialized (
  select d.case_id, c.attempt
  from purser.dunning_cases d cross join lateral (select * from purser.charges c where c.charge_key = d.charge_key offset 0) c
  where d.stripe_customer_id = $1::text and d.state = 'open'
    and ($2::text is not null or coalesce(c.chosen_payment_method, c.payment_method) is null)
    and ($5::text is null or c.attached_payment_method is distinct from $5::text)
    and ($5::text is null or c.namespace = any($6::text[]))
)
update purser.dunning_cases d set offered_at = purser.now(), offered_method = $2::text, offered_attempt = f.attempt, offered_by = $3::text, offered_reason = $4::text,
  goes_on_at = null
from f where d.case_id = f.case_id and d.state = 'open'
returning d.case_id`

/** namespace, period, currency. Only what waits for room has a note while it is open. */
export const roomMade = `with f as materialized (
  select d.case_id
  from purser.dunning_cases d cross join lateral (select * from purser.charges c where c.charge_key = d.charge_key offset 0) c
  where d.state = 'open' and d.detail is not null and ${inScope}
)
update purser.dunning_cases d set goes_on_at = null from f where d.case_id = f.case_id and d.state = 'open'
returning d.case_id`

/** Stripe customer */
export const openOf = `with v as (select ${caseColumns} from purser.dunning_cases d where d.stripe_customer_id = $1::text and d.state = 'open')
${views} where coalesce(c.chosen_payment_method, c.payment_method) is null order by v.opened_at_ms desc, v.case_id desc`

/** only open, limit */
export const list = `with v as (
  select ${caseColumns} from purser.dunning_cases d where not $1::boolean or d.state = 'open' order by d.opened_at desc, d.case_id desc limit $2::integer
)
${views} order by v.opened_at_ms desc, v.case_id desc`

/** key */
export const casesOf = `with v as (select ${caseColumns} from purser.dunning_cases d where d.charge_key = $1::text)
${views} order by v.case_number desc`
