/**
 * The statements of the book of refunds. A claim is a transaction that holds the charge's row, and then the refund's: what is left of a payment is
 * summed after the lock, so that two requests never see the same rest. Everything else is one statement.
 */
import { firstPage, newPage, same, writeEvents as writeChargeEvents } from "./eventPages.ts"
import { recordColumns, terms } from "./ledgerReads.ts"

const clock = `t as materialized (select purser.now() as now)`
const epochMs = (column: string) => `(extract(epoch from ${column}) * 1000)::float8`
const open = `('requested', 'pending')`
const writeEvents = (from: string, columns: string) =>
  `insert into purser.refund_events (refund_key, seq, at, from_state, to_state, worker, attempt, detail) select ${columns} from ${from}`

const columns = `refund_key, charge_key, refund_id, currency, amount_minor, reason, actor, note, state, attempt, payment_intent_id,
  processor_refund_id, outcome_code, outcome_detail`
/** The namespace of a refund's charge; `refund` is the alias of the refund's row. */
const namespaceOf = (refund: string) => `(select c.namespace from purser.charges c where c.charge_key = ${refund}.charge_key) as namespace`
const claimed = (refund: string) => `${namespaceOf(refund)}, refund_key, charge_key, refund_id, currency, amount_minor, reason, state as claimed_state, attempt, payment_intent_id, charge_id,
  processor_refund_id, lease_epoch, ${epochMs("lease_until - now")} as lease_left_ms`

/** charge key. Holds the row until the transaction ends. */
export const lockCharge = `select state, received_minor, outcome_payment_intent_id, charge_id, currency, billing_period
from purser.charges where charge_key = $1::text for no key update`

/** charge key, the payment's object. Of the refunds of that payment alone: an identity that was paid twice has two. */
export const held = `select coalesce(sum(amount_minor), 0)::bigint as held_minor from purser.refunds
where charge_key = $1::text and payment_intent_id = $2::text and state in ('requested', 'pending', 'succeeded', 'already_refunded')`

/** charge key */
export const ours = `select processor_refund_id from purser.refunds where charge_key = $1::text and processor_refund_id is not null`

/** refund key. Held as well until the transaction ends: a late holder settles it without asking for the charge. */
export const stored = `select ${columns}, coalesce(${epochMs("lease_until - purser.now()")}, 0) as lease_left_ms
from purser.refunds where refund_key = $1::text for no key update`

/** refund key, charge key, id, period, currency, amount, reason, actor, note, intent, charge, worker, lease ms */
export const insert = `with ${clock},
n as (
  insert into purser.refunds (refund_key, charge_key, refund_id, billing_period, currency, amount_minor, reason, actor, note, state,
    payment_intent_id, charge_id, lease_worker, lease_epoch, lease_until, requested_at, updated_at)
  select $1::text, $2::text, $3::text, $4::text, $5::text, $6::bigint, $7::text, $8::text, $9::text, 'requested', $10::text, $11::text, $12::text, 1,
    t.now + $13::float8 * interval '1 millisecond', t.now, t.now from t
  returning *, updated_at as now
),
e as (${writeEvents("n", "refund_key, event_seq, now, null, state, lease_worker, attempt, 'requested by ' || actor || ': ' || note")})
select ${claimed("n")} from n`

/** refund key, worker, lease ms */
export const take = `with ${clock},
u as (
  update purser.refunds r set lease_worker = $2::text, lease_epoch = r.lease_epoch + 1,
    lease_until = t.now + $3::float8 * interval '1 millisecond', event_seq = r.event_seq + 1, updated_at = t.now
  from t where r.refund_key = $1::text and r.state in ${open}
  returning r.*, t.now
),
e as (${writeEvents("u", "refund_key, event_seq, now, state, state, lease_worker, attempt, 'taken over'")})
select ${claimed("u")} from u`

/** refund key, actor, note. The attempt moves by an explicit act alone. */
export const again = `with ${clock},
u as (
  update purser.refunds r set state = 'requested', attempt = r.attempt + 1, outcome_code = null, outcome_detail = null, processor_refund_id = null,
    settled_at = null, lease_epoch = r.lease_epoch + 1, event_seq = r.event_seq + 1, updated_at = t.now
  from t where r.refund_key = $1::text and r.state = 'refused'
  returning r.*, t.now
),
e as (${writeEvents("u", "refund_key, event_seq, now, 'refused', state, null, attempt, 'asked again by ' || $2::text || ': ' || $3::text")})
select refund_key from u`

/** refund key. Holds the row until the transaction ends. */
export const lockRefund = `select ${columns}, lease_epoch, coalesce(${epochMs("lease_until - purser.now()")}, 0) as lease_left_ms
from purser.refunds where refund_key = $1::text for no key update`

/** refund key, worker, state, processor id, code, detail, poll ms, moves */
export const record = `with ${clock},
f as materialized (select refund_key, state as from_state from purser.refunds where refund_key = $1::text),
u as (
  update purser.refunds r set state = $3::text, processor_refund_id = coalesce($4::text, r.processor_refund_id), outcome_code = $5::text,
    outcome_detail = $6::text, lease_until = case when $3::text = 'pending' then t.now + $7::float8 * interval '1 millisecond' end,
    settled_at = case when $3::text = 'pending' then null else t.now end,
    event_seq = case when $8::boolean then r.event_seq + 1 else r.event_seq end, updated_at = t.now
  from f, t where r.refund_key = f.refund_key
  returning r.*, f.from_state, t.now
),
e as (${writeEvents("u where $8::boolean", "refund_key, event_seq, now, from_state, state, $2::text, attempt, coalesce(outcome_detail, processor_refund_id)")})
select refund_key from u`

/** refund key, epoch, lease ms */
export const extend = `update purser.refunds r set lease_until = purser.now() + $3::float8 * interval '1 millisecond'
where r.refund_key = $1::text and r.lease_epoch = $2::bigint and r.state in ${open} returning refund_key`

/** refund key, worker, epoch, retry ms, detail */
export const handBack = `with ${clock},
u as (
  update purser.refunds r set lease_until = t.now + $4::float8 * interval '1 millisecond', event_seq = r.event_seq + 1, updated_at = t.now
  from t where r.refund_key = $1::text and r.lease_epoch = $3::bigint and r.state in ${open}
  returning r.*, t.now
),
e as (${writeEvents("u", "refund_key, event_seq, now, state, state, $2::text, attempt, $5::text")})
select refund_key from u`

/** worker, limit, lease ms. The keys as an array, so that a batch stays index probes whatever the size of the table. */
export const takeExpired = `with ${clock},
f as materialized (
  select r.refund_key, r.lease_until as ran_out_at from purser.refunds r
  where r.lease_until <= (select now from t) and r.state in ${open}
  order by r.lease_until limit $2::integer for update skip locked
),
u as (
  update purser.refunds r set lease_worker = $1::text, lease_epoch = r.lease_epoch + 1,
    lease_until = t.now + $3::float8 * interval '1 millisecond', event_seq = r.event_seq + 1, updated_at = t.now
  from t where r.refund_key = any(array(select refund_key from f))
  returning r.*, t.now
),
e as (${writeEvents("u", "refund_key, event_seq, now, state, state, lease_worker, attempt, 'taken over'")})
select ${claimed("u")} from u join f using (refund_key) order by ran_out_at, refund_key`

const seen = `select ${columns}, ${namespaceOf("r")}, ${epochMs("requested_at")} as requested_at_ms from purser.refunds r`

/** charge key */
export const successor = `select charge_key from purser.charges where revises = $1::text`

/** charge key. Holds the row until the transaction ends. */
export const lockRevision = `select ${recordColumns} from purser.charges where charge_key = $1::text for no key update`

/** charge key, the payment's object */
export const refunded = `select coalesce(sum(amount_minor) filter (where state = 'succeeded'), 0)::bigint as refunded_minor,
  coalesce(bool_or(state = 'already_refunded'), false) as nothing_left
from purser.refunds where charge_key = $1::text and payment_intent_id = $2::text`

/** key, namespace, customer, period, item, amount, currency, Stripe customer, method, allow future, revision, revises, actor, reason */
export const openRevision = `with ${clock},
${newPage},
n as (
  insert into purser.charges (${terms}, revises, state, planned_at, updated_at, event_pages)
  select $1::text, $2::text, $3::text, $4::text, $5::text, $6::bigint, $7::text, $8::text, $9::text, $10::boolean, $11::integer, $12::text, 'planned',
    t.now, t.now, ${firstPage} from t
  returning charge_key
),
e as (${
  writeChargeEvents("n", { seq: same("1"), from: same(null), to: same("'planned'"), worker: same(null), attempt: same("1"), detail: same("'billed anew by ' || $13::text || ': ' || $14::text") })
})
select charge_key from n`

/** refund key */
export const find = `${seen} where refund_key = $1::text`

/** charge key */
export const list = `${seen} where charge_key = $1::text order by requested_at, refund_id`

/** refund key */
export const events = `select refund_key, seq, ${epochMs("at")} as at_ms, from_state, to_state, worker, attempt, detail
from purser.refund_events where refund_key = $1::text order by seq`

/** period, or null for all */
export const report = `select billing_period, currency, state, count(*) as refunds, sum(amount_minor) as amount_minor
from purser.refunds where $1::text is null or billing_period = $1::text
group by billing_period, currency, state order by billing_period, currency, state`

/** period, or null for all. What the book made itself is left out. */
export const reportElsewhere = `select c.billing_period, m.currency, count(*) as refunds, sum(m.amount_minor) as amount_minor
from purser.movements m join purser.charges c on c.charge_key = m.charge_key
where ($1::text is null or c.billing_period = $1::text) and m.kind = 'refund' and m.status = 'succeeded'
  and not exists (select 1 from purser.refunds r where r.charge_key = m.charge_key and r.processor_refund_id = m.id)
group by c.billing_period, m.currency order by c.billing_period, m.currency`
