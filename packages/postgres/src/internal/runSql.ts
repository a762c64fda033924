/**
 * The statements of the run book. Whole-run statements are set-based; paging walks the primary key `(run_id, line)` and
 * probes one charge per row.
 */
import { eventPageMax, same, writeEvents } from "./eventPages.ts"
import { terms } from "./ledgerReads.ts"

const open = `('planned', 'claimed', 'attached')`
const rowTerms = `r.line, r.charge_key, r.namespace, r.customer_id, r.billing_period, r.item, r.amount_minor, r.currency, r.stripe_customer_id,
  r.payment_method, r.allow_future, r.revision`
const planned = `(select planned_at is not null from purser.runs where run_id = $1::text)`
const conflict = `(c.amount_minor, c.currency, c.stripe_customer_id, c.payment_method)
  is distinct from (r.amount_minor, r.currency, r.stripe_customer_id, r.payment_method)`
const stateOf = `case when c.charge_key is null then 'staged' when ${conflict} then 'conflict' when c.quarantine is not null then 'quarantined'
  else c.state end`
const receivedOf = `case when c.state = 'succeeded' and not (${conflict}) then coalesce(c.received_minor, 0) else 0 end`
const probe = (join: string) => `${join} lateral (select * from purser.charges c where c.charge_key = r.charge_key offset 0) c on ${planned}`

/** run, source. What an unplanned run of this id left is dropped. */
export const begin = `with r as (
  insert into purser.runs (run_id, source, state, begun_at) values ($1::text, $2::text, 'staging', purser.now())
  on conflict (run_id) do update set source = excluded.source, state = 'staging', begun_at = excluded.begun_at
  where purser.runs.planned_at is null
  returning run_id
)
delete from purser.run_rows d using r where d.run_id = r.run_id`

/**
 * run, lines, keys, namespaces, customers, periods, items, amounts, currencies, Stripe customers, methods, allow future, revisions. Lines that are all new: where one is
 * not, the statement fails. To look for each before it is written takes a quarter of the statement.
 */
export const stageNew = `insert into purser.run_rows (run_id, line, ${terms})
select $1::text, i.* from unnest($2::integer[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::text[], $10::text[],
  $11::text[], $12::boolean[], $13::integer[]) as i`

/** The same parameters; a line that is there stays as it is. */
export const stage = `${stageNew}
on conflict (run_id, line) do nothing`

/** The rows that the planner knows of; -1 before it has looked. */
export const known = (table: "charges" | "run_rows") => `select reltuples::float8 as known from pg_class where oid = 'purser.${table}'::regclass`

/** In one transaction. A tenth of the usual sample: its reading is the time of the statement, and keys and runs are all that is looked for. */
export const analyze = (table: "charges" | "run_rows") => ["set local default_statistics_target = 10", `analyze purser.${table}`]

/** run, limit. All rows are counted by key alone; what people are told is looked up for the few that stand more than once. */
export const duplicates = `with k as materialized (
  select charge_key from purser.run_rows where run_id = $1::text group by charge_key having count(*) > 1 order by min(line) limit $2::integer
)
select r.charge_key, min(r.customer_id) as customer_id, min(r.billing_period) as billing_period, min(r.item) as item, array_agg(r.line order by r.line) as lines
from k join purser.run_rows r on r.charge_key = k.charge_key and r.run_id = $1::text group by r.charge_key order by min(r.line)`

/** run */
export const totals = `select r.namespace, r.billing_period, r.currency, count(*) as rows, sum(r.amount_minor) as amount_minor,
  coalesce(sum(r.amount_minor) filter (where v.charge_key is not null or c.room_attempt is not null or c.state not in ${open} or (c.charge_key is not null and ${conflict})), 0)
    as covered_minor, count(c.charge_key) as present
from purser.run_rows r left join purser.charges c on c.charge_key = r.charge_key
  left join purser.cap_reservations v on v.charge_key = r.charge_key
    and v.namespace = r.namespace and v.billing_period = r.billing_period and v.currency = r.currency
where r.run_id = $1::text group by r.namespace, r.billing_period, r.currency order by r.namespace, r.billing_period, r.currency`

/** Memory for the sort of a plan's part, so that it is none of the disk's. A server that gives more is not given less. */
const planMemoryKb = 32 * 1024

/** run. Makes the row if none is there, and holds it until the plan is done. */
export const lockRun = `insert into purser.runs (run_id, source, state, begun_at) values ($1::text, '', 'staging', purser.now())
on conflict (run_id) do update set source = purser.runs.source returning planned_at is not null as planned,
  set_config('work_mem', greatest(pg_size_bytes(current_setting('work_mem')) / 1024, ${planMemoryKb}) || 'kB', true)`

/**
 * Rows that one statement plans. Charges lie as they are planned, and are charged in the order of their lines: those of a whole run in the order of
 * the key would be a page of the table each to a batch of claims, written to the log as a whole after each checkpoint.
 */
export const planPart = 65_536

/** run, after line, limit. The last line of so many rows. */
export const endOfPart = `select coalesce(max(line), $2::integer) as line
from (select line from purser.run_rows where run_id = $1::text and line > $2::integer order by line limit $3::integer) r`

const plan = (onConflict: string) => `with k as materialized (
  select count(*) as rows from purser.run_rows where run_id = $1::text and line > $2::integer and line <= $3::integer
),
g as materialized (
  select array_agg(purser.next_event_page()) as pages from k cross join lateral generate_series(0, k.rows / ${eventPageMax})
),
n as (
  insert into purser.charges (${terms}, state, planned_at, updated_at, event_pages)
  select ${terms}, 'planned', purser.now(), purser.now(), array[(select pages from g)[1 + ((row_number() over (order by charge_key, line) - 1) / ${eventPageMax})::integer]]
  from purser.run_rows where run_id = $1::text and line > $2::integer and line <= $3::integer and revision = 0 order by charge_key, line
  ${onConflict}
  returning charge_key, event_pages[1] as page
),
e as (${writeEvents("n", { seq: same("1"), from: same(null), to: same("'planned'"), worker: same(null), attempt: same("1"), detail: same(null) }, "page")})
select (select count(*) from n) as planned, (select rows from k) as rows`

/**
 * run, after line, through line. In the order of the key, in which claims lock rows too; the first line of an identity wins. A revision is opened by an
 * act, never by a plan.
 */
export const planRows = plan("on conflict (charge_key) do nothing")

/** The same, and a failure where an identity is there already: to look for each before it is written takes an eighth of the statement. */
export const planNewRows = plan("")

/** run */
export const markSettled = `update purser.run_rows r set settled_before = true from purser.charges c
where r.run_id = $1::text and c.charge_key = r.charge_key and c.state not in ${open}`

/** run, planned, present */
export const setPlanned = `update purser.runs set state = 'planned', planned_at = coalesce(planned_at, purser.now()),
  planned = coalesce(planned, $2::bigint), present = coalesce(present, $3::bigint) where run_id = $1::text`

/** run */
export const discard = `with r as (delete from purser.runs where run_id = $1::text and planned_at is null returning run_id)
delete from purser.run_rows d using r where d.run_id = r.run_id`

/**
 * run, after line, limit, through line. To the planner those that are pending are few, whatever their number, so that it looks up the
 * charges of all lines and sorts what is left: the lines must be about as many as the rows that are wanted.
 */
export const pending = `select ${rowTerms}
from purser.run_rows r ${probe("join")}
where r.run_id = $1::text and r.line > $2::integer and r.line <= $4::integer and c.state in ${open} and c.quarantine is null and not (${conflict})
  and (c.lease_until is null or c.lease_until <= purser.now())
order by r.line limit $3::integer`

/** run, after line, limit */
export const report = `select ${rowTerms}, ${stateOf} as state, c.payment_intent_id, ${receivedOf} as received_minor, r.settled_before,
  case when c.charge_key is null then null
    when ${conflict} then 'the ledger holds ' || c.amount_minor || ' ' || c.currency || ' of ' || c.stripe_customer_id || ' with '
      || coalesce(c.payment_method, 'the default payment method')
    else coalesce(c.quarantine, c.outcome_detail) end as detail
from purser.run_rows r ${probe("left join")}
where r.run_id = $1::text and r.line > $2::integer order by r.line limit $3::integer`

/** run, keys. Probes the keys one by one, however many rows the run has. */
export const termsOf = `select r.charge_key, r.amount_minor, r.currency, r.stripe_customer_id, r.payment_method
from unnest($2::text[]) as k(charge_key)
  join lateral (select * from purser.run_rows r where r.charge_key = k.charge_key and r.run_id = $1::text offset 0) r on true`

/** run */
export const summary = `select r.currency, ${stateOf} as state, count(*) as rows, sum(r.amount_minor) as amount_minor,
  coalesce(sum(${receivedOf}), 0) as received_minor, count(*) filter (where r.settled_before) as settled_before
from purser.run_rows r left join purser.charges c on c.charge_key = r.charge_key and ${planned}
where r.run_id = $1::text group by 1, 2 order by 1, 2`

/** run, after line, limit, through line, states. The lines as in `pending`. */
export const unpaid = `select ${rowTerms}, c.state, c.attempt
from purser.run_rows r ${probe("join")}
where r.run_id = $1::text and r.line > $2::integer and r.line <= $4::integer and c.state = any($5::text[]) and c.quarantine is null and not (${conflict})
order by r.line limit $3::integer`

/** run */
export const lastLine = `select coalesce(max(line), 0) as line from purser.run_rows where run_id = $1::text`

/** run, unplanned run. In one act, so that a repeat finds nothing to do. */
export const absorb = `with base as (select coalesce(max(line), 0) as line from purser.run_rows where run_id = $1::text),
moved as (
  insert into purser.run_rows (run_id, line, ${terms}, settled_before)
  select $1::text, base.line + (row_number() over (order by f.line))::integer, ${terms},
    exists (select 1 from purser.charges c where c.charge_key = f.charge_key and c.state not in ${open})
  from purser.run_rows f cross join base
  where f.run_id = $2::text and not exists (select 1 from purser.run_rows r where r.run_id = $1::text and r.charge_key = f.charge_key)
  returning 1
),
rows_gone as (delete from purser.run_rows where run_id = $2::text),
run_gone as (delete from purser.runs where run_id = $2::text and planned_at is null)
select count(*) as added from moved`

/** run, state */
export const finish = `update purser.runs set state = $2::text, finished_at = purser.now() where run_id = $1::text`
