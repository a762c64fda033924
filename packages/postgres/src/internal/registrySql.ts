/** The statements of the register of runs, of the stash and of the schedules. */
import { commandDefinition, goneOnWith } from "@purser/core"

/** States that only a further round leaves. */
export const over = `'canceled', 'interrupted', 'finished', 'failed'`

const ms = (column: string) => `(extract(epoch from ${column}) * 1000)::float8 as ${column}_ms`

/** A process that began under the name of another one does not speak for that one's runs. */
export const isLost = (run: string) => `(${run}.definition = '${commandDefinition}' and ${run}.ended_at is null and not exists (
  select 1 from purser.workers w where w.worker = ${run}.runner and w.stopped_at is null and w.started_at <= ${run}.created_at
    and w.beat_at > purser.now() - interval '20 seconds'))`

/** When it was last heard of; when it was registered, if never. */
export const lastHeard = (run: string) =>
  `greatest(${run}.created_at, (select w.beat_at from purser.workers w where w.worker = ${run}.runner and w.started_at <= ${run}.created_at))`

const columnsOf = (run: string) => `run_id, name, state, definition, params::text as params, options::text as options, round, pauses, runner, step, detail, counted::text as counted,
  actor, ${ms("created_at")}, ${ms("started_at")}, ${ms("ended_at")},
  case when ${isLost(run)} then (extract(epoch from ${lastHeard(run)}) * 1000)::float8 end as lost_since_ms`

/** digest. Held until the transaction ends, so that of two commands with one digest the second sees the run of the first. */
export const lockDigest = `select pg_advisory_xact_lock(hashtextextended('purser.run_registry ' || $1::text, 0))`

/** digest */
export const inHand = `select ${columnsOf("r")} from purser.run_registry r
where definition = '${commandDefinition}' and ended_at is null and params ->> 'digest' = $1::text and not ${isLost("r")} order by created_at limit 1`

/** run, name, state, definition, params, options, actor, runner or null. No row where the name is given. */
export const register = `with n as (
  insert into purser.run_registry (run_id, name, state, definition, params, options, actor, runner, created_at, started_at)
  values ($1::text, $2::text, $3::text, $4::text, $5::text::jsonb, $6::text::jsonb, $7::text, $8::text, purser.now(),
    case when $3::text = 'running' then purser.now() end)
  on conflict (name) do nothing returning *
), e as (
  insert into purser.run_events (run_id, at, act, actor) select run_id, created_at, state, actor from n
) select ${columnsOf("n")} from n`

/** name or run */
export const find = `select ${columnsOf("r")} from purser.run_registry r where run_id = $1::text or name = $1::text order by run_id = $1::text desc limit 1`

/** states or null, limit */
export const list = `select ${columnsOf("r")} from purser.run_registry r
where $1::text[] is null or case when ${isLost("r")} then 'interrupted' else state end = any($1::text[])
order by created_at desc, run_id limit $2::integer`

const aRunnerLives = `exists (
  select 1 from purser.workers w where w.serves like 'runs,%' and w.stopped_at is null and w.beat_at > purser.now() - interval '20 seconds')`

/** No parameters. Those that are over wait for a person for a day, unless another run has gone on with them. */
export const standings = `with a as materialized (select ${aRunnerLives} as runners),
r as (
  select state, definition, ${isLost("r")} as lost from purser.run_registry r
  where ended_at is null or (state in ('interrupted', 'failed') and ended_at > purser.now() - interval '1 day' and coalesce(detail, '') not like '${goneOnWith}%')
)
select case when r.lost then 'interrupted' when r.state in (${over}) or r.definition = '${commandDefinition}' or a.runners then r.state else 'abandoned' end as standing,
  count(*)::integer as runs
from r cross join a group by 1`

/** run, from, to, actor, detail, whether the detail is told */
export const change = `with u as (
  update purser.run_registry set state = $3::text,
    detail = case when $6::boolean then $5::text else detail end,
    pauses = pauses + case when $3::text = 'paused' then 1 else 0 end,
    started_at = coalesce(started_at, case when $3::text = 'running' then purser.now() end),
    ended_at = case when $3::text in (${over}) then purser.now() end
  where run_id = $1::text and state = any($2::text[]) returning *
), e as (
  insert into purser.run_events (run_id, at, act, actor, detail) select run_id, purser.now(), state, $4::text, $5::text from u
) select ${columnsOf("u")} from u`

/** run, params, actor */
export const extend = `with u as (
  update purser.run_registry set state = 'waiting', round = round + 1, params = $2::text::jsonb, detail = null, ended_at = null
  where run_id = $1::text and state in (${over}) returning *
), e as (
  insert into purser.run_events (run_id, at, act, actor) select run_id, purser.now(), 'extended', $3::text from u
) select ${columnsOf("u")} from u`

/** run, runner, step, detail, whether the detail is told, counted; null leaves what is there. */
export const note = `with b as (
  select run_id, runner from purser.run_registry where run_id = $1::text for update
), u as (
  update purser.run_registry r set runner = coalesce($2::text, r.runner), step = coalesce($3::text, r.step),
    detail = case when $5::boolean then $4::text else r.detail end, counted = coalesce($6::text::jsonb, r.counted)
  from b where r.run_id = b.run_id returning r.run_id
)
insert into purser.run_events (run_id, at, act, actor)
select b.run_id, purser.now(), 'taken', $2::text from b join u on u.run_id = b.run_id where $2::text is not null and b.runner is distinct from $2::text`

/** run */
export const events = `select ${ms("at")}, act, actor, detail from purser.run_events where run_id = $1::text order by position`

/** run, round, stage, chunk, body */
export const put = `insert into purser.run_stash (run_id, round, stage, chunk, body) values ($1::text, $2::integer, $3::integer, $4::integer, $5::text)
on conflict (run_id, round, stage, chunk) do update set body = excluded.body`

/** run, round, stage, chunk */
export const get = `select body from purser.run_stash where run_id = $1::text and round = $2::integer and stage = $3::integer and chunk = $4::integer`

/** run, round, stage, from chunk */
export const cut = `delete from purser.run_stash where run_id = $1::text and round = $2::integer and stage = $3::integer and chunk >= $4::integer`

/** run */
export const drop = `delete from purser.run_stash where run_id = $1::text`

/** name, cron, zone, definition, params, options, actor */
export const putSchedule = `insert into purser.run_schedules (name, cron, zone, definition, params, options, actor, put_at)
values ($1::text, $2::text, $3::text, $4::text, $5::text::jsonb, $6::text::jsonb, $7::text, purser.now())
on conflict (name) do update set cron = excluded.cron, zone = excluded.zone, definition = excluded.definition, params = excluded.params,
  options = excluded.options, actor = excluded.actor, put_at = excluded.put_at`

/** name */
export const removeSchedule = `delete from purser.run_schedules where name = $1::text returning name`

/** No parameters. */
export const schedules = `select name, cron, zone, definition, params::text as params, options::text as options, actor from purser.run_schedules order by name`
