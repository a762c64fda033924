/**
 * The statements of the spend cap. Reserve and release are functions of the database (see their migration); what a person
 * does writes its line into `cap_events` in the same statement.
 */

const columns = `namespace, billing_period, currency, expected_minor, headroom_percent, cap_minor, reserved_minor, reservations, closed`
const writeEvent = (act: string, from: string, actor: string, reason: string) =>
  `insert into purser.cap_events (at, namespace, billing_period, currency, act, expected_minor, headroom_percent, cap_minor, actor, reason)
  select purser.now(), namespace, billing_period, currency, '${act}', expected_minor, headroom_percent, cap_minor, ${actor}, ${reason} from ${from}`

/** keys, namespaces, periods, currencies, attempts, amounts, forced */
export const reserve = `select ord, verdict, cap_minor, reserved_minor
from purser.reserve($1::text[], $2::text[], $3::text[], $4::text[], $5::integer[], $6::bigint[], $7::boolean[])`

/** keys, attempts */
export const release = `select purser.release($1::text[], $2::integer[])`

/** namespace, period, currency, expected, headroom, cap, reason or null. No row: another writer was first, ask again. */
export const open = `with n as (
  insert into purser.caps (namespace, billing_period, currency, expected_minor, headroom_percent, cap_minor)
  values ($1::text, $2::text, $3::text, $4::bigint, $5::integer, $6::bigint)
  on conflict (namespace, billing_period, currency) do nothing
  returning ${columns}
),
e as (${writeEvent("opened", "n", "null", "$7::text")})
select ${columns} from n
union all
select ${columns} from purser.caps where namespace = $1::text and billing_period = $2::text and currency = $3::text`

/** namespace, period, currency, expected, headroom, cap, actor, reason */
export const raise = `with u as (
  update purser.caps set expected_minor = $4::bigint, headroom_percent = $5::integer, cap_minor = $6::bigint
  where namespace = $1::text and billing_period = $2::text and currency = $3::text
  returning ${columns}
),
e as (${writeEvent("raised", "u", "$7::text", "$8::text")})
select ${columns} from u`

/** namespace, period, currency, actor or null, reason or null */
export const close = `with u as (
  update purser.caps set closed = true
  where namespace = $1::text and billing_period = $2::text and currency = $3::text and not closed
  returning ${columns}
),
e as (${writeEvent("closed", "u", "$4::text", "$5::text")})
select ${columns} from u
union all
select ${columns} from purser.caps where namespace = $1::text and billing_period = $2::text and currency = $3::text and closed`

/** namespace, period, currency, actor, reason */
export const reopen = `with u as (
  update purser.caps set closed = false
  where namespace = $1::text and billing_period = $2::text and currency = $3::text and closed
  returning ${columns}
),
e as (${writeEvent("reopened", "u", "$4::text", "$5::text")})
select ${columns} from u
union all
select ${columns} from purser.caps where namespace = $1::text and billing_period = $2::text and currency = $3::text and not closed`

/** period, or null for all */
export const report = `select ${columns} from purser.caps where $1::text is null or billing_period = $1::text
order by namespace, billing_period, currency`
