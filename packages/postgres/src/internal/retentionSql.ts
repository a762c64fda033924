/** The statements of retention. Each deletes a bounded number of things, or counts all of them. */
import { isLost, lastHeard, over } from "./registrySql.ts"

/** What the tables of the workflow engine begin with. */
export const engineTables = "purser_cluster"

const messages = `${engineTables}_messages`
const replies = `${engineTables}_replies`

/** No parameters. */
export const hasEngine = `select to_regclass('${messages}') is not null and to_regclass('${replies}') is not null as present`

/** Requests are deleted with their replies; a count says how many there are of both. */
const sweepOf = (victims: string) => `${victims},
r as (select r.id from ${replies} r where r.request_id in (select request_id from v)),
gone_replies as (delete from ${replies} where $3::boolean and id in (select id from r)),
gone_messages as (delete from ${messages} where $3::boolean and id in (select id from v))`

/**
 * Before which id, limit, whether to delete. An execution is over when its run has a last reply that is no suspension: whatever
 * else bears its id, a timer that nobody waits for, say, goes with it.
 */
export const pruneExecutions = `with over as (
  select m.entity_type, m.entity_id from ${messages} m join ${replies} r on r.id = m.last_reply_id
  where m.tag = 'run' and m.kind = 0 and m.processed and m.entity_type like 'Workflow/%' and m.entity_type <> 'Workflow/-/DurableClock'
    and r.kind = 0 and r.id < $1::bigint
    and (r.payload::jsonb ->> '_tag' = 'Failure' or r.payload::jsonb #>> '{value,_tag}' = 'Complete')
  order by r.id limit $2::integer
),
${sweepOf(`v as (
  select m.id, m.request_id from ${messages} m join over o on o.entity_id = m.entity_id
    and (m.entity_type = o.entity_type or m.entity_type = 'Workflow/-/DurableClock')
)`)}
select (select count(*) from over) as things, (select count(*) from v) + (select count(*) from r) as rows`

/** Before which id, limit, whether to delete. Firings of schedules that were answered. */
export const pruneFirings = `with ${sweepOf(`v as (
  select m.id, m.request_id from ${messages} m join ${replies} r on r.id = m.last_reply_id
  where m.entity_type like 'ClusterCron/%' and m.processed and r.kind = 0 and r.id < $1::bigint
  order by m.id limit $2::integer
)`)}
select (select count(*) from v) as things, (select count(*) from v) + (select count(*) from r) as rows`

const ended = (column: string) => `${column} < purser.now() - make_interval(secs => $1::float8)`

/** Seconds, limit, whether to delete. A run stays while one of its charges may still move, waits for a person, or is in an open conflict. */
export const pruneRuns = `with ended as (
  select g.run_id, g.state in (${over}) and ${ended("g.ended_at")} or ${isLost("g")} and ${ended(lastHeard("g"))} as is_old from purser.run_registry g
),
old as (
  select run_id from ended where is_old
  union
  select r.run_id from purser.runs r where r.state in ('finished', 'stopped') and ${ended("r.finished_at")}
    and not exists (select 1 from ended g where g.run_id = r.run_id and not g.is_old)
),
v as (
  select o.run_id from old o where not exists (
    select 1 from purser.run_rows w join purser.charges c on c.charge_key = w.charge_key
    where w.run_id = o.run_id and (c.settled_at is null or c.state = 'requires_action' or c.quarantine is not null))
  and not exists (select 1 from purser.run_conflicts x where x.run_id = o.run_id and x.resolved_at is null)
  order by o.run_id limit $2::integer
),
w as (select count(*) as rows from purser.run_rows where run_id in (select run_id from v)),
gone_rows as (delete from purser.run_rows where $3::boolean and run_id in (select run_id from v)),
gone_runs as (delete from purser.runs where $3::boolean and run_id in (select run_id from v)),
gone_events as (delete from purser.run_events where $3::boolean and run_id in (select run_id from v)),
gone_stash as (delete from purser.run_stash where $3::boolean and run_id in (select run_id from v)),
gone_registry as (delete from purser.run_registry where $3::boolean and run_id in (select run_id from v))
select (select count(*) from v) as things, (select rows from w) as rows`

/**
 * Seconds, limit, whether to delete. Cases that ended, with their workflow. The last case of a charge that is not paid stays: another one
 * takes the number after it, and an id that was given twice would be taken for a repeat.
 */
export const pruneDunning = `with v as (
  select d.case_id from purser.dunning_cases d where d.state <> 'open' and d.workflow = 'over' and ${ended("d.closed_at")} and (
    exists (select 1 from purser.dunning_cases n where n.charge_key = d.charge_key and n.number > d.number)
    or exists (select 1 from purser.charges c where c.charge_key = d.charge_key and c.state = 'succeeded' and c.quarantine is null))
  order by d.case_id limit $2::integer
),
gone as (delete from purser.dunning_cases where $3::boolean and case_id in (select case_id from v))
select (select count(*) from v) as things, (select count(*) from v) as rows`

/** Seconds, limit, whether to delete. Events that were dealt with. */
export const pruneWebhooks = `with v as (
  select event_id from purser.webhook_events where due_at is null and ${ended("received_at")} order by received_at limit $2::integer
),
gone as (delete from purser.webhook_events where $3::boolean and event_id in (select event_id from v))
select (select count(*) from v) as things, (select count(*) from v) as rows`
