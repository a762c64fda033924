/** The statements of the book of calls. */

/** keys, ages in ms, operations, statuses, request ids, replayed, elapsed. The store's clock tells when: events have it too. */
export const keep = `insert into purser.processor_calls (charge_key, at, operation, status, request_id, replayed, elapsed_ms)
select charge_key, purser.now() - age_ms * interval '1 millisecond', operation, status, request_id, replayed, elapsed_ms
from unnest($1::text[], $2::float8[], $3::text[], $4::text[], $5::text[], $6::boolean[], $7::integer[])
  as i(charge_key, age_ms, operation, status, request_id, replayed, elapsed_ms)`

/** key, limit */
export const of = `select charge_key, (extract(epoch from at) * 1000)::float8 as at_ms, operation, status, request_id, replayed, elapsed_ms
from purser.processor_calls where charge_key = $1::text order by at limit $2::integer`

/** seconds, limit. A bounded part of what is too old; the next hour takes the next. */
export const forget = `delete from purser.processor_calls where ctid in (
  select ctid from purser.processor_calls where at < purser.now() - make_interval(secs => $1::float8) limit $2::integer)`
