/** The statements that look at runs from outside. The view of a run is one pass over its rows and their charges. */

const epochMs = (column: string) => `(extract(epoch from ${column}) * 1000)::float8`
const columns = `n.run_id, n.source, n.state, ${epochMs("n.begun_at")} as begun_at_ms, ${epochMs("n.planned_at")} as planned_at_ms,
  ${epochMs("n.finished_at")} as finished_at_ms, coalesce(n.planned, 0) + coalesce(n.present, 0) as rows, coalesce(n.present, 0) as present`

/** before in ms or null, limit, whether of these runs alone, these */
export const list = `select ${columns} from purser.runs n
where ($1::float8 is null or n.begun_at < to_timestamp($1::float8 / 1000)) and (not $3::boolean or n.run_id = any($4::text[]))
order by n.begun_at desc, n.run_id limit $2::integer`

/** run */
export const find = `select ${columns}, ${epochMs("purser.now()")} as now_ms from purser.runs n where n.run_id = $1::text`

const conflict = `(c.amount_minor, c.currency, c.stripe_customer_id, c.payment_method)
  is distinct from (r.amount_minor, r.currency, r.stripe_customer_id, r.payment_method)`
const settledHere = `c.settled_at is not null and not r.settled_before`
const slice = (column: string) =>
  `width_bucket(extract(epoch from ${column})::float8 * 1000, $2::float8, $3::float8, $4::integer)`

/** key, limit */
export const runsOf = `select r.run_id, r.line, coalesce(n.source, '') as source, g.name, g.actor, ${epochMs("n.begun_at")} as begun_at_ms, ${epochMs("n.planned_at")} as planned_at_ms
from purser.run_rows r join purser.runs n on n.run_id = r.run_id left join purser.run_registry g on g.run_id = r.run_id
where r.charge_key = $1::text order by n.begun_at, r.run_id, r.line limit $2::integer`

/**
 * run, from ms, to ms, slices, since ms. Slices count from 1; 0 is before, and one more than there are is after. A quarantined charge is
 * written by nobody, so that its last write was the mark.
 */
export const groups = `select r.namespace, r.billing_period, r.currency,
  case when c.charge_key is null then 'staged' when ${conflict} then 'conflict' when c.quarantine is not null then 'quarantined' else c.state end as state,
  case when c.quarantine is not null then ${slice("c.updated_at")} when ${settledHere} then ${slice("c.settled_at")} end as settled_slice,
  case when c.first_claimed_at is not null then ${slice("c.first_claimed_at")} end as claimed_slice,
  count(*) as rows, sum(r.amount_minor) as amount_minor,
  coalesce(sum(c.received_minor) filter (where c.state = 'succeeded' and not (${conflict})), 0) as received_minor,
  count(*) filter (where r.settled_before) as settled_before,
  count(*) filter (where ${settledHere} and c.settled_at > greatest(purser.now() - interval '1 minute', to_timestamp($5::float8 / 1000))) as settled_last_minute,
  ${epochMs("min(c.first_claimed_at) filter (where not r.settled_before)")} as first_claimed_at_ms,
  ${epochMs(`greatest(max(c.first_claimed_at) filter (where not r.settled_before), max(c.settled_at) filter (where ${settledHere}))`)} as last_moved_at_ms
from purser.run_rows r left join purser.charges c on c.charge_key = r.charge_key
  and (select planned_at is not null from purser.runs where run_id = $1::text)
where r.run_id = $1::text group by 1, 2, 3, 4, 5, 6`
