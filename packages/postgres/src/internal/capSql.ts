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

/**
 * namespace, period, currency, expected, headroom, cap, reason or null. No row: another writer was first, ask again. A new cap begins with the payments that were
 * found while there was none, whatever it says.
 */
export const open = `with q as materialized (
  select q.charge_key, q.attempt, q.amount_minor, sum(q.amount_minor) over (order by q.charge_key) as taken_minor from purser.cap_uncovered q
  where q.namespace = $1::text and q.billing_period = $2::text and q.currency = $3::text
    and not exists (select 1 from purser.cap_reservations r where r.charge_key = q.charge_key)
),
n as (
  insert into purser.caps (namespace, billing_period, currency, expected_minor, headroom_percent, cap_minor, reserved_minor, reservations, reserved_apart)
  select $1::text, $2::text, $3::text, $4::bigint, $5::integer, $6::bigint, coalesce(sum(amount_minor), 0)::bigint, count(*), count(*) > 0 from q
  on conflict (namespace, billing_period, currency) do nothing
  returning ${columns}
),
e as (${writeEvent("opened", "n", "null", "$7::text")}),
r as (
  insert into purser.cap_reservations (charge_key, namespace, billing_period, currency, attempt, amount_minor, reserved_at)
  select q.charge_key, n.namespace, n.billing_period, n.currency, q.attempt, q.amount_minor, purser.now() from q cross join n order by q.charge_key
),
d as (
  delete from purser.cap_uncovered q using n where q.namespace = n.namespace and q.billing_period = n.billing_period and q.currency = n.currency
),
o as (
  insert into purser.cap_events (at, namespace, billing_period, currency, act, cap_minor, charge_key, reason)
  select purser.now(), n.namespace, n.billing_period, n.currency, 'forced', n.cap_minor, q.charge_key,
    (q.taken_minor - n.cap_minor) || ' over the cap: the money had moved'
  from q cross join n where q.taken_minor > n.cap_minor order by q.charge_key
)
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

/** What a cap is found by. */
export const scope = "namespace, billing_period, currency"

/**
 * Parts of a statement that has settled the charges `u`: a payment that holds no room under a cap of this database takes it in the same act, whatever the cap says.
 * That of a late one may have been given back, and an adopted one had none. The lock of the cap comes before the look whether there is room, as in `purser.reserve`.
 */
export const takeRoom = `l as materialized (
  select ${scope} from purser.caps where (${scope}) in (select ${scope} from u where state = 'succeeded') order by ${scope} for update
),
r as (
  insert into purser.cap_reservations (charge_key, ${scope}, attempt, amount_minor, reserved_at)
  select u.charge_key, ${scope}, u.attempt, u.amount_minor, u.now from u join l using (${scope}) where u.state = 'succeeded' and u.room_attempt is null order by u.charge_key
  on conflict (charge_key) do nothing
  returning charge_key, ${scope}, amount_minor
),
k as (
  update purser.caps c set reserved_minor = c.reserved_minor + s.amount_minor, reservations = c.reservations + s.reservations
  from (select ${scope}, sum(amount_minor)::bigint as amount_minor, count(*) as reservations from r group by ${scope}) s
  where (c.namespace, c.billing_period, c.currency) = (s.namespace, s.billing_period, s.currency)
  returning c.namespace, c.billing_period, c.currency, c.cap_minor, c.reserved_minor - c.cap_minor as over_minor
),
o as (
  insert into purser.cap_events (at, ${scope}, act, cap_minor, charge_key, reason)
  select purser.now(), ${scope}, 'forced', cap_minor, charge_key, over_minor || ' over the cap: the money had moved'
  from (
    select ${scope}, k.cap_minor, r.charge_key, k.over_minor - coalesce(sum(r.amount_minor) over (
      partition by ${scope} order by r.charge_key rows between 1 following and unbounded following), 0) as over_minor
    from r join k using (${scope})
  ) x where over_minor > 0 order by charge_key
)`
