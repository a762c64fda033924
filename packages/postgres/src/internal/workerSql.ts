/** The statements of the workers' book. In flight is read from leases, speed from the newest events; neither is a counter that could go wrong. */
import { chargesWithLease } from "./leasePages.ts"

const epochMs = (column: string) => `(extract(epoch from ${column}) * 1000)::float8`

/** worker, host, pid, serves, version. True when it is new here. */
export const beat = `insert into purser.workers as w (worker, host, pid, serves, version, started_at, beat_at)
values ($1::text, $2::text, $3::integer, $4::text, $5::text, purser.now(), purser.now())
on conflict (worker) do update set host = excluded.host, pid = excluded.pid, serves = excluded.serves, version = excluded.version,
  started_at = case when w.pid = excluded.pid and w.host = excluded.host and w.stopped_at is null then w.started_at else excluded.started_at end,
  beat_at = excluded.beat_at, stopped_at = null
returning (w.started_at = w.beat_at) as fresh`

/** Those that were not heard of for a day. */
export const forget = `delete from purser.workers where beat_at < purser.now() - interval '1 day'`

/** worker */
export const leave = `update purser.workers set stopped_at = purser.now(), beat_at = purser.now() where worker = $1::text`

/** newest events that are looked at. A worker's sweeper works under its name and a slash: that is the same worker. */
export const list = `with held as (
  select split_part(c.lease_worker, '/', 1) as worker, count(*) as in_flight
  from ${chargesWithLease()} c where c.lease_until > purser.now() and c.quarantine is null and c.state in ('claimed', 'attached') and c.lease_worker is not null
  group by 1
),
done as (
  select split_part(e.worker, '/', 1) as worker,
    count(*) filter (where e.to_state in ('succeeded', 'declined', 'rejected', 'requires_action', 'canceled')) as settled,
    count(*) filter (where e.detail = 'taken over') as taken_over
  from (select * from purser.charge_events order by page desc limit $1::integer) e
  where e.at > purser.now() - interval '1 minute' and e.worker is not null
  group by 1
)
select coalesce(w.worker, h.worker, d.worker) as worker, w.host, w.pid, w.serves, w.version, ${epochMs("w.started_at")} as started_at_ms,
  ${epochMs("w.beat_at")} as beat_at_ms, ${epochMs("w.stopped_at")} as stopped_at_ms, coalesce(h.in_flight, 0) as in_flight,
  coalesce(d.settled, 0) as settled, coalesce(d.taken_over, 0) as taken_over, ${epochMs("purser.now()")} as now_ms
from (select * from purser.workers order by beat_at desc limit 1000) w
full join held h on h.worker = w.worker full join done d on d.worker = coalesce(w.worker, h.worker)
order by w.stopped_at desc nulls first, 1`

/** Now, for a book without workers. */
export const now = `select ${epochMs("purser.now()")} as now_ms`
