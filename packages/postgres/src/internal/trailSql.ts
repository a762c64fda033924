/** The statements of the operators' trail, and of the histories that are shown beside it. */

const epochMs = (column: string) => `(extract(epoch from ${column}) * 1000)::float8`

/** actor, act, subject, reason, detail */
export const note = `insert into purser.operator_acts (at, actor, act, subject, reason, detail)
values (purser.now(), $1::text, $2::text, $3::text, $4::text, $5::text)`

/** before or null, limit */
export const acts = `select position, ${epochMs("at")} as at_ms, actor, act, subject, reason, detail from purser.operator_acts
where $1::bigint is null or position < $1::bigint order by position desc limit $2::integer`

/** subject, limit */
export const actsOn = `select position, ${epochMs("at")} as at_ms, actor, act, subject, reason, detail from purser.operator_acts
where subject = $1::text order by position desc limit $2::integer`

/** period or null, limit. A cap that a run has opened was opened by whoever began the run. */
export const capEvents = `select e.position, ${epochMs("e.at")} as at_ms, e.namespace, e.billing_period, e.currency, e.act, e.expected_minor, e.headroom_percent, e.cap_minor,
  e.charge_key, coalesce(e.actor, g.actor) as actor, e.reason
from (select * from purser.cap_events where $1::text is null or billing_period = $1::text order by position desc limit $2::integer) e
left join purser.run_registry g on e.act = 'opened' and g.run_id = substr(e.reason, 5)
order by e.position desc`

/** limit */
export const pauseEvents = `select position, ${epochMs("at")} as at_ms, cause, act, actor, reason from purser.pause_events
order by position desc limit $1::integer`
