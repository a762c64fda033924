/** The statements of the event log. Each probes or walks an index, whatever the size of the history. */
import { eventPageMax } from "./eventPages.ts"

const columns = (event: string, charge: string, sequence: string) =>
  `${sequence} as sequence, ${event}.charge_key, ${event}.seq, (extract(epoch from ${event}.at) * 1000)::float8 as at_ms,
  ${event}.from_state, ${event}.to_state, ${event}.worker, ${event}.attempt, ${event}.detail, ${event}.principal,
  ${charge}.namespace, ${charge}.customer_id, ${charge}.billing_period, ${charge}.item, ${charge}.amount_minor, ${charge}.currency`

/** epoch */
export const beginEpoch = `insert into purser.feed_epochs (epoch, begun_at, after_sequence)
select $1::text, purser.now(), last from purser.feed_head on conflict (epoch) do nothing`

/** batch */
export const advance = `select last, trimmed_to, more from purser.sequence_events($1::integer)`

/** epoch, or null for any */
export const head = `select last, trimmed_to, $1::text is null or exists (select 1 from purser.feed_epochs where epoch = $1::text) as known
from purser.feed_head`

/** after, limit. Each page of the trail that the next places are in is opened once. Row by row along the log, so that the plan cannot become a join of whole tables. */
export const read = `with f as materialized (
  select sequence, position from purser.feed_log where sequence > $1::bigint order by sequence limit $2::integer
),
e as materialized (
  select e.* from (select distinct position - position % ${eventPageMax} as page from f) p
  cross join lateral (select * from purser.charge_events e where e.page = p.page offset 0) e
)
select ${columns("e", "c", "f.sequence")}
from f join e using (position)
cross join lateral (select * from purser.charges c where c.charge_key = e.charge_key offset 0) c
order by f.sequence`

/**
 * at, after key, limit. Each charge with its last event up to the place, or nulls when it had none by then; its pages are opened from the last one on. An event at
 * or below `low` that has no place in the log had one that was trimmed.
 */
export const snapshot = `select c.charge_key as page_key, e.*
from (select * from purser.charges where charge_key > $2::text order by charge_key limit $3::integer) c
left join lateral (
  select ${columns("v", "c", "coalesce(f.sequence, 0)")}
  from (select g.page from unnest(c.event_pages) with ordinality as g(page, n) order by g.n desc) g
    cross join lateral purser.event_in(g.page, c.charge_key) v
    left join lateral (select f.sequence from purser.feed_log f where f.position = v.position offset 0) f on true
  where (f.sequence <= $1::bigint or (f.sequence is null and v.position <= (select low from purser.feed_head)))
  limit 1
) e on true
order by c.charge_key`

/** keep, batch */
export const trim = `select last, trimmed_to from purser.trim_feed($1::bigint, $2::bigint)`
