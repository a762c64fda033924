/** The statements of the switch. Each keeps its trail in the same act. */

/** Every pause in force. */
export const inForce = `select cause, actor, reason, extract(epoch from since)::float8 * 1000 as since_ms from purser.pauses order by cause`

/** cause, actor, reason */
export const pause = `with u as (
  insert into purser.pauses (cause, actor, reason, since) values ($1::text, $2::text, $3::text, purser.now())
  on conflict (cause) do nothing returning cause, actor, reason, since
), e as (
  insert into purser.pause_events (at, cause, act, actor, reason) select since, cause, 'paused', actor, reason from u
) select cause from u`

/** cause, actor, reason */
export const resume = `with u as (
  delete from purser.pauses where cause = $1::text returning cause
), e as (
  insert into purser.pause_events (at, cause, act, actor, reason) select purser.now(), cause, 'resumed', $2::text, $3::text from u
) select cause from u`
