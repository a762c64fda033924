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

/** period or null, limit */
export const capEvents = `select position, ${epochMs("at")} as at_ms, namespace, billing_period, currency, act, expected_minor, headroom_percent, cap_minor,
  charge_key, actor, reason
from purser.cap_events where $1::text is null or billing_period = $1::text order by position desc limit $2::integer`

/** limit */
export const pauseEvents = `select position, ${epochMs("at")} as at_ms, cause, act, actor, reason from purser.pause_events
order by position desc limit $1::integer`
