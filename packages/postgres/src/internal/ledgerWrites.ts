/**
 * The statements that move charges. Each takes a whole batch as arrays, so that one prepared text serves every size, and
 * writes its events itself.
 *
 * They share one shape. `i`: the input, in the order of its key, so that two batches lock rows in one order. `f`: each
 * input with the row as the statement's snapshot shows it (a lateral probe, so that a batch stays a row of index probes
 * whatever the planner believes about sizes), and the verdict on it. `u`: the rows that move, by compare-and-set on
 * `event_seq`, which every move raises. A row that changed between snapshot and write is answered with `again`, and the
 * caller asks anew. Times are the database's: `purser.now()`, which is the same throughout a statement.
 *
 * Nearly every claim is a first one (`firstClaims`), nearly every object the first of its charge, and nearly every settlement a payment of the
 * attached object by its holder. `attachFirst`, `settlePaid` and, for a payment that is alone, `settleOne` are for these: no look before the write, since the
 * conditions of the write say all. What they leave is for `attach` and `settle`.
 */
import { takeRoom } from "./capSql.ts"
import { isNext, isNextTo, newPage, newPageAfter, same, withNext, withPage, writeAttached, writeEvents, writeObjects, writeWholeEvents } from "./eventPages.ts"
import { writePage } from "./leasePages.ts"

/** The time, for statements that join it. */
export const clock = `t as materialized (select purser.now() as now)`
const probe = `left join lateral (select * from purser.charges c where c.charge_key = i.charge_key offset 0) c on true`
/** True of every key. The planner takes it to hold for few, and looks each of them up, be the table as small as it may. */
export const few = "octet_length(i.charge_key) = 32"
const open = `('planned', 'claimed', 'attached')`
/** States in which a charge may have a lease. */
export const held = `('claimed', 'attached', 'processing')`
/** The object of an outcome where it is not the one that was attached: by it the charge is found. */
const foundObject = "nullif(c.outcome_payment_intent_id, c.payment_intent_id) as object"

/** A time, as it is answered. */
export const epochMs = (column: string) => `(extract(epoch from ${column}) * 1000)::float8`

/** Which of the keys of a batch; null for all of them, which it nearly always is. */
export const keysUnlessAll = "case when count(*) < cardinality($1::text[]) then coalesce(array_agg(charge_key::text), '{}') end"

/** What `begin` and `claim` are given first. */
export const claims = `$1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::text[], $9::text[], $10::boolean[], $11::text[], $13::text[]`
/** Their names. */
export const claimed = `charge_key, namespace, customer_id, billing_period, item, amount_minor, currency, stripe_customer_id, payment_method, allow_future, worker, principal`

/**
 * keys, namespaces, customers, periods, items, amounts, currencies, Stripe customers, methods, allow future, workers, lease ms, principals, revisions.
 * For rows that are there; one that is not is answered with `again`.
 */
export const claim = `with ${clock},
${newPage},
i as materialized (
  select * from unnest(${claims}, $14::integer[]) as i(${claimed}, revision)
  order by charge_key
),
f as materialized (
  select i.*, c.state, c.event_seq, c.quarantine, c.lease_until, c.payment_intent_id, c.attempt,
    c.amount_minor as kept_amount, c.currency as kept_currency, c.stripe_customer_id as kept_customer, c.payment_method as kept_method,
    c.outcome_payment_intent_id, c.charge_id, c.received_minor, c.outcome_code, c.outcome_decline_code, c.outcome_detail,
    c.outcome_advice_code, c.declined_charge_id as kept_declined_id,
    case
      when c.charge_key is null then case when i.revision = 0 then 'again' else 'unopened' end
      when (c.amount_minor, c.currency, c.stripe_customer_id, c.payment_method)
        is distinct from (i.amount_minor, i.currency, i.stripe_customer_id, i.payment_method) then 'conflict'
      when c.quarantine is not null then 'quarantined'
      when c.state not in ${open} then 'settled'
      when c.lease_until > t.now then 'in_progress'
      else 'free'
    end as verdict
  from i cross join t ${probe}
),
w as (
  update purser.charges c set
    state = case when c.state = 'planned' then 'claimed' else c.state end,
    lease_worker = f.worker, lease_epoch = c.lease_epoch + 1, lease_until = t.now + $12::float8 * interval '1 millisecond',
    first_claimed_at = coalesce(c.first_claimed_at, t.now), event_seq = c.event_seq + 1, event_pages = ${withPage}, updated_at = t.now
  from f, t
  where f.verdict = 'free' and c.charge_key = f.charge_key and c.event_seq = f.event_seq
    and (c.lease_until is null or c.lease_until <= t.now)
  returning c.*, f.state as from_state, t.now
),
e as (${
  writeEvents("w join i using (charge_key)", {
    from: "from_state", to: "state", worker: "lease_worker", detail: `case when from_state in ${held} then 'taken over' end`, principal: "i.principal"
  })
}),
g as (${writePage("w")})
select f.charge_key,
  case when w.charge_key is not null then 'claimed' when f.verdict = 'free' then 'again' else f.verdict end as verdict,
  f.quarantine, f.kept_amount, f.kept_currency, f.kept_customer, f.kept_method,
  f.state, f.outcome_payment_intent_id, f.charge_id, f.received_minor, f.outcome_code, f.outcome_decline_code, f.outcome_detail,
  f.outcome_advice_code, f.kept_declined_id as declined_charge_id,
  ${epochMs("f.lease_until - t.now")} as left_ms,
  w.state as claimed_state, w.lease_epoch, w.generation, coalesce(w.attempt, f.attempt) as attempt, w.payment_intent_id,
  coalesce(w.attached_payment_method, w.chosen_payment_method, w.payment_method) as payment_method,
  coalesce(w.chosen_payment_method, w.payment_method) as chosen_method, w.declined_charge_id as last_declined_id,
  ${epochMs("w.first_claimed_at")} as first_claimed_at_ms, ${epochMs("w.lease_until - w.now")} as lease_left_ms,
  ${epochMs("w.now - w.first_claimed_at")} as since_first_claim_ms
from f cross join t left join w on w.charge_key = f.charge_key`

/** keys, workers, epochs, generations, payment intents, methods. Objects for charges that have none, by their holders; answers the keys that moved, or null for all. */
export const attachFirst = `with ${newPage},
i as materialized (
  select * from unnest($1::text[], $2::text[], $3::bigint[], $4::integer[], $5::text[], $6::text[])
    as i(charge_key, worker, epoch, generation, payment_intent_id, payment_method)
  order by charge_key
),
u as (
  update purser.charges c set state = 'attached', payment_intent_id = i.payment_intent_id, attached_payment_method = i.payment_method,
    event_seq = c.event_seq + 1, event_pages = ${withPage}, updated_at = purser.now()
  from (select * from i where ${few}) i
  where c.charge_key = i.charge_key and c.state = 'claimed' and c.payment_intent_id is null and c.lease_epoch = i.epoch and c.generation = i.generation
    and ${isNext}
  returning c.charge_key, c.event_seq, c.attempt, c.payment_intent_id, i.worker
),
e as (${writeEvents("u", { from: same("'claimed'"), to: same("'attached'"), worker: "worker", detail: "payment_intent_id" })}),
b as (${writeAttached("u", "payment_intent_id")})
select ${keysUnlessAll} as moved from u`

/** keys, workers, epochs, generations, payment intents, methods. The same object again freezes a method where there is none yet. */
export const attach = `with ${clock},
${newPage},
i as materialized (
  select * from unnest($1::text[], $2::text[], $3::bigint[], $4::integer[], $5::text[], $6::text[])
    as i(charge_key, worker, epoch, generation, payment_intent_id, payment_method)
  order by charge_key
),
f as materialized (
  select i.*, c.event_seq, c.state as kept_state, c.payment_intent_id as kept_id,
    case
      when c.payment_intent_id = i.payment_intent_id and c.generation = i.generation then
        case when c.lease_epoch = i.epoch and c.state = 'attached' and coalesce(c.attached_payment_method, c.chosen_payment_method, c.payment_method) is null
          and i.payment_method is not null then 'free' else 'attached' end
      when c.lease_epoch = i.epoch and c.state = 'claimed' and c.payment_intent_id is null and c.generation = i.generation then 'free'
      else 'lost'
    end as verdict
  from i ${probe}
),
u as (
  update purser.charges c set state = 'attached', payment_intent_id = f.payment_intent_id, attached_payment_method = f.payment_method,
    event_seq = c.event_seq + 1, event_pages = ${withPage}, updated_at = t.now
  from f, t
  where f.verdict = 'free' and c.charge_key = f.charge_key and c.event_seq = f.event_seq
  returning c.charge_key, c.event_seq, c.attempt, c.payment_intent_id, f.kept_state, f.worker, t.now
),
e as (${writeEvents("u", { from: "kept_state", to: same("'attached'"), worker: "worker", detail: "payment_intent_id" })}),
b as (${writeAttached("u where kept_state <> 'attached'", "payment_intent_id")})
select f.charge_key, f.kept_id,
  case when u.charge_key is not null then 'attached' when f.verdict = 'free' then 'again' else f.verdict end as verdict
from f left join u on u.charge_key = f.charge_key`

/** A payment of an attached object by who has held the charge from its first claim on, at the first attempt. */
const pay = (object: string, charge: string, received: string, page: string) =>
  `update purser.charges c set state = 'succeeded', outcome_payment_intent_id = ${object}, charge_id = ${charge}, received_minor = ${received},
    outcome_code = null, outcome_decline_code = null, outcome_detail = null, outcome_advice_code = null, next_attempt_at = null,
    release_due = false, dunning_due = false, lease_until = null, settled_at = purser.now(), event_seq = c.event_seq + 1,
    event_pages = ${page}, updated_at = purser.now()`
const isPaid = (key: string, object: string) =>
  `c.charge_key = ${key} and c.state = 'attached' and c.lease_epoch = 1 and c.attempt = 1 and c.payment_intent_id = ${object}`
const paidLines = { from: same("'attached'"), to: same("'succeeded'"), worker: same("$2::text"), attempt: same("1"), detail: same(null), principal: same(null) }

/** keys in their order, worker, payment intents, charge ids, received. Answers the keys that moved, or null for all. */
export const settlePaid = `with ${newPage},
u as (
  ${pay("i.intent_id", "i.charge_id", "i.received_minor", withPage)}
  from (
    select * from (select unnest($1::text[]) as charge_key, unnest($3::text[]) as intent_id, unnest($4::text[]) as charge_id, unnest($5::bigint[]) as received_minor) i
    where ${few}
  ) i
  where ${isPaid("i.charge_key", "i.intent_id")} and ${isNext}
  returning c.charge_key, c.event_seq
),
e as (${writeEvents("u", paidLines)})
select ${keysUnlessAll} as moved from u`

/** key, worker, payment intent, charge id, received. The same of one charge, from plain values; answers null where it moved, and no keys where it did not. */
export const settleOne = `with ${newPage},
u as (
  ${pay("$3::text", "$4::text", "$5::bigint", withNext("ep.page"))}
  from ep
  where ${isPaid("$1::text", "$3::text")} and ${isNextTo("ep.page")}
  returning c.event_seq, ep.page
),
e as (${writeWholeEvents("array[$1::text]", { ...paidLines, seq: same("u.event_seq") }, "u", "u.page")} returning 1)
select case when count(*) = 0 then '{}'::text[] end as moved from e`

/**
 * keys, workers, epochs, attempts, proof intents, states, outcome intents, charge ids, received, codes, decline codes,
 * details, poll ms, advice codes, declined charges, next attempts in ms
 */
export const settle = `with ${clock},
${newPage},
i as materialized (
  select * from unnest($1::text[], $2::text[], $3::bigint[], $4::integer[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[],
    $10::text[], $11::text[], $12::text[], $13::float8[], $14::text[], $15::text[], $16::float8[])
    as i(charge_key, worker, epoch, attempt, proof_id, state, intent_id, charge_id, received_minor, code, decline_code, detail, poll_ms,
      advice_code, declined_id, next_ms)
  order by charge_key
),
f as materialized (
  select i.*, c.event_seq, c.state as kept_state, c.attempt as kept_attempt, c.outcome_payment_intent_id, c.charge_id as kept_charge_id,
    c.received_minor as kept_received, c.outcome_code, c.outcome_decline_code, c.outcome_detail, c.outcome_advice_code, c.declined_charge_id,
    case
      when c.charge_key is null then 'lost'
      when i.state = 'succeeded' and c.payment_intent_id = i.proof_id and c.state <> 'succeeded' then 'moves'
      when c.lease_epoch = i.epoch and c.attempt = i.attempt and c.state in ${held}
        then case when c.state = 'processing' and i.state = 'processing' then 'polls' else 'moves' end
      when c.state in ${open} then 'lost'
      else 'recorded'
    end as verdict,
    c.lease_epoch = i.epoch and c.attempt = i.attempt and c.state in ${held} as ours
  from i ${probe}
),
u as (
  update purser.charges c set state = f.state, outcome_payment_intent_id = f.intent_id, charge_id = f.charge_id,
    received_minor = f.received_minor, outcome_code = f.code, outcome_decline_code = f.decline_code, outcome_detail = f.detail,
    outcome_advice_code = f.advice_code, declined_charge_id = coalesce(f.declined_id, c.declined_charge_id),
    next_attempt_at = t.now + f.next_ms * interval '1 millisecond',
    unpaid = f.state not in ('succeeded', 'processing'), release_due = f.state in ('declined', 'rejected', 'canceled'), dunning_due = f.state = 'declined',
    lease_until = case when f.state = 'processing' and c.quarantine is null then t.now + f.poll_ms * interval '1 millisecond' end,
    settled_at = case when f.state = 'processing' then null else t.now end,
    event_seq = case when f.verdict = 'moves' then c.event_seq + 1 else c.event_seq end,
    event_pages = case when f.verdict = 'moves' then ${withPage} else c.event_pages end, updated_at = t.now
  from f, t
  where f.verdict in ('moves', 'polls') and c.charge_key = f.charge_key and c.event_seq = f.event_seq
  returning c.charge_key, c.event_seq, c.attempt, c.state, c.lease_until, c.namespace, c.billing_period, c.currency, c.amount_minor, c.room_attempt, f.kept_state, f.worker, f.ours,
    f.verdict, c.outcome_detail, t.now, ${foundObject}
),
e as (${
  writeEvents("u where verdict = 'moves'", {
    from: "kept_state", to: "state", worker: "worker",
    detail: "case when state = 'succeeded' and kept_state in ('declined', 'rejected', 'canceled') then 'late success after ' || kept_state else outcome_detail end"
  })
}),
b as (${writeObjects("u where verdict = 'moves'", "object")}),
${takeRoom},
g as (${writePage("u")})
select f.charge_key,
  case when u.charge_key is not null then f.verdict when f.verdict in ('moves', 'polls') then 'again' else f.verdict end as verdict,
  f.ours, f.kept_state as state, f.outcome_payment_intent_id, f.kept_charge_id as charge_id, f.kept_received as received_minor,
  f.outcome_code, f.outcome_decline_code, f.outcome_detail, f.outcome_advice_code, f.declined_charge_id
from f left join u on u.charge_key = f.charge_key`

const ours = `c.lease_epoch = i.epoch and c.state in ${held} and c.quarantine is null`

/** keys, epochs, lease ms. No lease ends earlier by it, as that of a charge does which was handed back for later: its page would come too late. */
export const extend = `with ${clock},
i as materialized (select * from unnest($1::text[], $2::bigint[]) as i(charge_key, epoch) order by charge_key),
f as materialized (select i.*, case when ${ours} then 'ours' else 'lost' end as verdict from i ${probe}),
u as (
  update purser.charges c set lease_until = greatest(c.lease_until, t.now + $3::float8 * interval '1 millisecond'), updated_at = t.now
  from f i, t
  where i.verdict = 'ours' and c.charge_key = i.charge_key and ${ours}
  returning c.charge_key
)
select charge_key from u`

/** keys, workers, epochs, retry ms, details. What has a lease without a worker is nobody's and waits: see `hasten`. */
export const handBack = `with ${clock},
i as materialized (
  select * from unnest($1::text[], $2::text[], $3::bigint[], $4::float8[], $5::text[]) as i(charge_key, worker, epoch, retry_ms, detail)
  order by charge_key
),
f as materialized (
  select i.* from (select * from i where ${few}) i join purser.charges c on c.charge_key = i.charge_key where ${ours} order by i.charge_key for update of c
),
${newPageAfter("f")},
u as (
  update purser.charges c set lease_worker = null, lease_until = t.now + i.retry_ms * interval '1 millisecond', event_seq = c.event_seq + 1, event_pages = ${withPage}, updated_at = t.now
  from f i, t where c.charge_key = i.charge_key
  returning c.charge_key, c.event_seq, c.state, c.attempt, c.lease_until, i.worker, i.detail, t.now
),
e as (${writeEvents("u", { from: "state", to: "state", worker: "worker", detail: "detail" })}),
g as (${writePage("u")})
select charge_key from u`

/** keys, attempts. Marked stays what somebody has taken room for since its release: room that is seen, or not yet; `purser.reserve` writes the row, so that its version is another one. */
export const markReleased = `with
i as materialized (select * from unnest($1::text[], $2::integer[]) as i(charge_key, attempt) order by charge_key),
f as materialized (
  select i.*, c.version from i
  cross join lateral (select c.xmin as version, c.room_attempt from purser.charges c where c.charge_key = i.charge_key and c.attempt = i.attempt and c.release_due offset 0) c
  left join lateral (select true as taken from purser.cap_reservations r where r.charge_key = i.charge_key and r.attempt <= i.attempt offset 0) r on true
  where r.taken is null and (c.room_attempt is null or c.room_attempt > i.attempt)
),
u as (
  update purser.charges c set release_due = false from f where c.charge_key = f.charge_key and c.xmin = f.version
  returning c.charge_key
)
select charge_key from u`

/** key, worker, epoch, generation, payment intent */
export const renew = `with ${clock},
${newPage},
u as (
  update purser.charges c set state = 'claimed', generation = c.generation + 1, payment_intent_id = null, attached_payment_method = null,
    event_seq = c.event_seq + 1, event_pages = ${withPage}, updated_at = t.now
  from t, purser.charges o
  where c.charge_key = $1::text and o.charge_key = $1::text and o.event_seq = c.event_seq and c.lease_epoch = $3::bigint
    and c.generation = $4::integer and c.payment_intent_id = $5::text and c.state in ${held}
  returning c.charge_key, c.event_seq, c.attempt, c.generation, o.state as from_state, t.now
),
e as (${writeEvents("u", { from: "from_state", to: same("'claimed'"), worker: "$2::text", detail: "'generation ' || generation" })})
select charge_key from u`

/** key, worker, detail */
export const quarantine = `with ${clock},
f as materialized (select c.charge_key from purser.charges c where c.charge_key = $1::text and c.quarantine is null for update),
${newPageAfter("f")},
u as (
  update purser.charges c set quarantine = $3::text, lease_until = null, event_seq = c.event_seq + 1, event_pages = ${withPage}, updated_at = t.now
  from f, t where c.charge_key = f.charge_key
  returning c.charge_key, c.event_seq, c.state, c.attempt, t.now
),
e as (${writeEvents("u", { from: "state", to: "state", worker: "$2::text", detail: "'quarantined: ' || $3::text" })})
select charge_key from u`

/** keys, states, actor, reason, method or null, attempt or null. A new epoch fences off whoever settled it before. */
export const reopen = `with ${clock},
f as materialized (
  select c.charge_key, c.state from purser.charges c
  where c.charge_key = any($1::text[]) and c.state = any($2::text[]) and c.state in ('declined', 'rejected', 'requires_action')
    and ($6::integer is null or c.attempt = $6::integer)
  order by c.charge_key for update
),
${newPageAfter("f")},
u as (
  update purser.charges c set state = case when c.payment_intent_id is null then 'planned' else 'attached' end,
    unpaid = false,
    attempt = c.attempt + 1, attached_payment_method = null, lease_epoch = c.lease_epoch + 1, lease_worker = null,
    lease_until = case when c.payment_intent_id is null or c.quarantine is not null then null else t.now end,
    outcome_payment_intent_id = null, charge_id = null, received_minor = null, outcome_code = null, outcome_decline_code = null,
    outcome_detail = null, outcome_advice_code = null, chosen_payment_method = coalesce($5::text, c.chosen_payment_method), next_attempt_at = null,
    settled_at = null, release_due = false, dunning_due = false, event_seq = c.event_seq + 1,
    event_pages = ${withPage}, updated_at = t.now
  from f, t where c.charge_key = f.charge_key
  returning c.charge_key, c.event_seq, c.state, c.attempt, c.lease_until, f.state as from_state, t.now
),
g as (${writePage("u")}),
e as (${
  writeEvents("u", { from: "from_state", to: "state", worker: same(null), detail: "'reopened by ' || $3::text || ': ' || $4::text || coalesce(' (with ' || $5::text || ')', '')" })
})
select count(*)::integer as moved from u`
