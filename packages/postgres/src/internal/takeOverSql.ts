/** The statements that take a charge over from whoever had it: its lease ran out, or what it waited for has come. */
import { newPageAfter, same, withPage, writeEvents } from "./eventPages.ts"
import { writePage } from "./leasePages.ts"
import { clock, held } from "./ledgerWrites.ts"

const epochMs = (column: string) => `(extract(epoch from ${column}) * 1000)::float8`

/** What a claimed charge is read from; `t` and the row `c` must be in scope. */
const claimedColumns = `${epochMs("first_claimed_at")} as first_claimed_at_ms, ${epochMs("lease_until - now")} as lease_left_ms,
  ${epochMs("now - first_claimed_at")} as since_first_claim_ms`

/**
 * What a row is read from that was taken over: by whoever took it in `taken`, with `now`. The run that it is a row of, the latest of
 * several, is for those who read the log.
 */
export const takenColumns = (taken: string) => `charge_key, namespace, customer_id, billing_period, item, amount_minor, currency, stripe_customer_id,
  payment_method as requested_method, allow_future, revision, state as claimed_state, lease_epoch, generation, attempt, payment_intent_id,
  coalesce(attached_payment_method, chosen_payment_method, payment_method) as payment_method,
  coalesce(chosen_payment_method, payment_method) as chosen_method, declined_charge_id as last_declined_id, ${claimedColumns},
  (select max(r.run_id) from purser.run_rows r where r.charge_key = ${taken}.charge_key) as run_id`

/**
 * worker, limit, lease ms. Of the charges whose lease ran out when their page was turned; one that somebody holds locked goes to the end.
 * Each row also says how many pages were looked at and how many of them put back; where nothing is taken, one row says that alone.
 */
export const takeExpired = `with ${clock},
d as materialized (
  delete from purser.lease_pages where ctid = any(array(
    select ctid from purser.lease_pages where ran_out order by turn_at limit $2::integer for update skip locked))
  returning keys[1] as charge_key
),
h as materialized (
  select d.charge_key, c.lease_until
  from (select distinct charge_key from d) d cross join lateral (
    select c.lease_until from purser.charges c
    where c.charge_key = d.charge_key and c.lease_until is not null and c.quarantine is null and c.state in ${held} offset 0) c
),
f as materialized (
  select c.charge_key, c.lease_until as ran_out_at from purser.charges c
  where c.charge_key = any(array(select charge_key from h order by charge_key)) and c.lease_until <= (select now from t) and c.quarantine is null and c.state in ${held}
  for update skip locked
),
${newPageAfter("f")},
u as (
  update purser.charges c set lease_worker = $1::text, lease_epoch = c.lease_epoch + 1,
    lease_until = t.now + $3::float8 * interval '1 millisecond', event_seq = c.event_seq + 1, event_pages = ${withPage}, updated_at = t.now
  from f, t where c.charge_key = f.charge_key
  returning c.*, f.ran_out_at, t.now
),
e as (${writeEvents("u", { from: "state", to: "state", worker: "lease_worker", detail: same("'taken over'") })}),
g as (${writePage("(select charge_key, lease_until from u union all select h.charge_key, h.lease_until from h cross join t where h.lease_until > t.now) p")}),
r as (
  insert into purser.lease_pages (turn_at, ran_out, keys)
  select t.now, true, array[h.charge_key] from h cross join t where h.lease_until <= t.now and not exists (select 1 from u where u.charge_key = h.charge_key)
  returning 1
)
select p.pages, p.put_back, ${takenColumns("u")}
from (select (select count(*) from d)::integer as pages, (select count(*) from r)::integer as put_back) p left join u on true
order by ran_out_at, charge_key`

/** key, worker, lease ms. A row that waits for the customer becomes one whose object is being read. */
export const takeWaiting = `with ${clock},
f as materialized (
  select c.charge_key, c.state as from_state, c.event_seq from purser.charges c
  where c.charge_key = $1::text and c.state in ('processing', 'requires_action') and c.quarantine is null
  for update
),
${newPageAfter("f")},
u as (
  update purser.charges c set state = 'processing', unpaid = false, lease_worker = $2::text, lease_epoch = c.lease_epoch + 1,
    lease_until = t.now + $3::float8 * interval '1 millisecond', event_seq = c.event_seq + 1, event_pages = ${withPage}, settled_at = null,
    updated_at = t.now
  from f, t where c.charge_key = f.charge_key
  returning c.*, f.from_state, t.now
),
e as (${
  writeEvents("u", {
    from: "from_state", to: same("'processing'"), worker: "lease_worker",
    detail: "case when from_state = 'requires_action' then 'its object has moved on' else 'taken over' end"
  })
}),
g as (${writePage("u")})
select ${takenColumns("u")}
from u`
