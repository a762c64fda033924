/**
 * The statements of first claims, which nearly all claims are: of an identity that is new, or of a planned row that nobody has had. There is no look before
 * the write, since its conditions say all; what they leave is for `claim`. Room under the cap is taken in the same act, as the last thing of it: the
 * locks of the caps come last, in the order in which `purser.reserve` takes them.
 *
 * A batch is nearly always of one worker, namespace, period and currency. `beginNew` and `beginPlanned` are for such: what all claims share is given once, room is one write
 * to one row, and the claims are written as they come, which is in the order of their keys. `beginOne` is for a claim that is alone, whose values are no arrays: of a statement of one row
 * its start is most. `begin` is for all others, and for what those leave; it inserts charges before it updates
 * any, which the look at `n` forces: in any order two claims could wait for each other.
 */
import { scope } from "./capSql.ts"
import { firstPage, isNext, newPage, same, sameOrNone, withPage, writeAttached, writeEvents, writeWholeEvents } from "./eventPages.ts"
import { dropPages, writeLeases, writePage } from "./leasePages.ts"
import { claimed, claims, epochMs, few, keysUnlessAll } from "./ledgerWrites.ts"

const columns = `charge_key, namespace, customer_id, billing_period, item, amount_minor, currency, stripe_customer_id, payment_method, allow_future, state,
    payment_intent_id, attached_payment_method, lease_worker, lease_epoch, lease_until, first_claimed_at, planned_at, updated_at, event_pages`

/** What a claim sets in a planned row `c`. */
const claimPlanned = (next: string, worker: string, lease: string) =>
  `state = ${next}, payment_intent_id = i.object, attached_payment_method = i.object_method, lease_worker = ${worker},
    lease_epoch = 1, lease_until = purser.now() + ${lease}, first_claimed_at = purser.now(), event_seq = c.event_seq + 1,
    event_pages = ${withPage}, updated_at = purser.now()`
/** Whether the row `c` is planned, nobody has had it, and it has the terms of the claim `i`. */
const isFirst = (currency: string) =>
  `c.charge_key = i.charge_key and c.state = 'planned' and c.lease_epoch = 0 and c.revision = 0 and c.quarantine is null and ${isNext}
    and (c.amount_minor, c.currency, c.stripe_customer_id, c.payment_method)
      is not distinct from (i.amount_minor, ${currency}, i.stripe_customer_id, i.payment_method)`

/** What a batch of one scope shares, and its columns. A column that would be null in all rows is an empty array: it ends before the others. */
const shared = { namespace: "$2::text", period: "$3::text", currency: "$4::text", worker: "$8::text", lease: "$9::float8 * interval '1 millisecond'" }
const each = `unnest($1::text[]) as charge_key, unnest($5::bigint[]) as amount_minor, unnest($6::text[]) as stripe_customer_id, unnest($7::text[]) as payment_method,
    unnest($11::text[]) as object, unnest($12::text[]) as object_method`
const next = "case when cardinality($11::text[]) = 0 then 'claimed' else 'attached' end"
const principal = sameOrNone("$10::text")

/** What a charge says of the room that the batch takes. */
const room = "case when $13::boolean then 1 end"

/**
 * Whether keys get no room, by what the cap's row said when it was locked: null where it had too little. The look for rows that hold some comes after the lock, and in a function,
 * which sees what was taken while this waited for it.
 */
const isRefused = (apart: string, keys: string) => `case ${apart} when false then false when true then purser.any_reserved(${keys}) else true end`

/** What follows the write of the charges `u` of one scope, and the answer. Where not all of them find room, or one holds some already, the statement fails. */
const afterAlike = (written: string, begun: string) => `d as materialized (select count(*) as reservations, sum(amount_minor)::bigint as amount_minor from u),
${written},
${dropPages("$14", "$15")},
k as (
  update purser.caps c set reserved_minor = c.reserved_minor + d.amount_minor, reservations = c.reservations + d.reservations
  from d
  where $13::boolean and (select count(*) from e) > 0 and (c.namespace, c.billing_period, c.currency) = (${shared.namespace}, ${shared.period}, ${shared.currency})
    and not c.closed and d.amount_minor <= c.cap_minor - c.reserved_minor
  returning c.reserved_apart
)
select ${begun} as begun, (select id from g) as page, ${epochMs("purser.now()")} as now_ms,
  case when not $13::boolean then '{}'
    when d.reservations > 0 and ${isRefused("(select reserved_apart from k)", "$1::text[]")} then purser.refuse_room() end as roomy
from d`

/**
 * keys in their order, namespace, period, currency, amounts, Stripe customers, methods, worker, lease ms, principal, objects of all or none, methods of the objects, whether
 * to take room, lease pages of which nothing is left, a charge of each, customers, items, allow future. Identities that are all new, and objects that have the key of their charge in their
 * name: where one is not new, the statement fails, and nothing of it has come about. To look for each before it is written takes a tenth of the claim.
 */
export const beginNew = `with ${newPage},
u as (
  insert into purser.charges (${columns}, room_attempt)
  select i.charge_key, ${shared.namespace}, i.customer_id, ${shared.period}, i.item, i.amount_minor, ${shared.currency}, i.stripe_customer_id, i.payment_method, $18::boolean, ${next},
    i.object, i.object_method, ${shared.worker}, 1, purser.now() + ${shared.lease}, purser.now(), purser.now(), purser.now(), ${firstPage}, ${room}
  from (select ${each}, unnest($16::text[]) as customer_id, unnest($17::text[]) as item) i
  returning charge_key, amount_minor
),
${afterAlike(`e as (${
  writeWholeEvents("$1::text[]", { seq: same("1"), from: same(null), to: same(next), worker: same(shared.worker), attempt: same("1"), detail: "nullif($11::text[], '{}')", principal }, "d")
} returning 1),
g as (${writeLeases("$1::text[]", shared.lease, "d")} returning id)`, "null::text[]")}`

/** The same parameters but for the last three, for planned rows. Answers the keys that were claimed (null: all), whether they have room (null: they have), and the page of their leases. */
export const beginPlanned = `with ${newPage},
u as (
  update purser.charges c set ${claimPlanned(next, shared.worker, shared.lease)}, room_attempt = ${room}
  from (select * from (select ${each}) i where ${few}) i
  where ${isFirst(shared.currency)}
  returning c.charge_key, c.event_seq, c.amount_minor, i.object
),
${afterAlike(`e as (${
  writeEvents("u", { from: same("'planned'"), to: same(next), worker: same(shared.worker), attempt: same("1"), detail: "object", principal })
} returning 1),
g as (${writePage(`(select charge_key, purser.now() + ${shared.lease} as lease_until from u) u`)} returning id)`, `(select ${keysUnlessAll} from u)`)}`

const oneNext = "case when $11::text is null then 'claimed' else 'attached' end"
/**
 * key, namespace, period, currency, amount, Stripe customer, method, worker, lease ms, principal, object, method of the object, customer, item, allow future. What `beginNew` does for one
 * identity, with room. Each part reads the one before, so that the cap is locked last.
 */
export const beginOne = `with u as (
  insert into purser.charges (${columns}, room_attempt)
  values ($1::text, ${shared.namespace}, $13::text, ${shared.period}, $14::text, $5::bigint, ${shared.currency}, $6::text, $7::text, $15::boolean, ${oneNext},
    $11::text, $12::text, ${shared.worker}, 1, purser.now() + ${shared.lease}, purser.now(), purser.now(), purser.now(), array[purser.next_event_page()], 1)
  returning event_pages[1] as page
),
e as (${
  writeWholeEvents("array[$1::text]", {
    seq: same("1"), from: same(null), to: same(oneNext), worker: same(shared.worker), attempt: same("1"), detail: sameOrNone("$11::text"), principal
  }, "u", "u.page")
} returning 1),
g as (${writeLeases("array[$1::text]", shared.lease, "e")} returning id),
k as (
  update purser.caps c set reserved_minor = c.reserved_minor + $5::bigint, reservations = c.reservations + 1
  from g
  where c.namespace = ${shared.namespace} and c.billing_period = ${shared.period} and c.currency = ${shared.currency} and not c.closed and $5::bigint <= c.cap_minor - c.reserved_minor
  returning c.reserved_apart
)
select null::text[] as begun, g.id as page, ${epochMs("purser.now()")} as now_ms,
  case when ${isRefused("k.reserved_apart", "array[$1::text]")} then purser.refuse_room() end as roomy
from g left join k on true`

const lease = "$12::float8 * interval '1 millisecond'"
/**
 * keys, namespaces, customers, periods, items, amounts, currencies, Stripe customers, methods, allow future, workers, lease ms, principals,
 * objects, methods of the objects, whether to take room, lease pages of which nothing is left, a charge of each. First claims of identities without a revision: a new row, or a planned one that
 * nobody has had. With an object the charge is attached at once; room is taken where all that a batch asks of a cap fits. Answers the keys
 * that were claimed, those of them that have room (null: all), and the page of their leases.
 */
export const begin = `with ${newPage},
i as materialized (
  select i.*, case when object is null then 'claimed' else 'attached' end as next
  from unnest(${claims}, $14::text[], $15::text[]) as i(${claimed}, object, object_method)
  order by charge_key
),
n as (
  insert into purser.charges (${columns})
  select i.charge_key, i.namespace, i.customer_id, i.billing_period, i.item, i.amount_minor, i.currency, i.stripe_customer_id,
    i.payment_method, i.allow_future, i.next, i.object, i.object_method, i.worker, 1, purser.now() + ${lease}, purser.now(),
    purser.now(), purser.now(), ${firstPage}
  from i order by i.charge_key on conflict (charge_key) do nothing
  returning charge_key
),
p as (
  update purser.charges c set ${claimPlanned("i.next", "i.worker", lease)}
  from (select i.* from i left join n using (charge_key) where n.charge_key is null and ${few} order by i.charge_key) i
  where ${isFirst("i.currency")}
  returning c.charge_key, c.event_seq
),
o as materialized (
  select i.*, w.event_seq, w.from_state
  from (select charge_key, 1 as event_seq, null::text as from_state from n union all select charge_key, event_seq, 'planned' from p) w
  join i using (charge_key)
),
e as (${writeEvents("o", { from: "from_state", to: "next", worker: "worker", attempt: same("1"), detail: "object", principal: "principal" })} returning 1),
b as (${writeAttached("o", "object")}),
g as (${writePage(`(select charge_key, purser.now() + ${lease} as lease_until from o) o`)} returning id),
${dropPages("$17", "$18")},
s as (
  select ${scope}, sum(amount_minor)::bigint as amount_minor, count(*) as reservations
  from o where $16::boolean and (select count(*) from n) >= 0 and (select count(*) from e) >= 0
  group by ${scope}
),
l as materialized (
  select c.namespace, c.billing_period, c.currency, s.amount_minor, s.reservations
  from purser.caps c join s using (${scope}) order by c.namespace, c.billing_period, c.currency for update of c
),
k as (
  update purser.caps c set reserved_minor = c.reserved_minor + s.amount_minor, reservations = c.reservations + s.reservations
  from l s
  where (c.namespace, c.billing_period, c.currency) = (s.namespace, s.billing_period, s.currency)
    and not c.closed and s.amount_minor <= c.cap_minor - c.reserved_minor
  returning c.namespace, c.billing_period, c.currency
),
r as (
  insert into purser.cap_reservations (charge_key, ${scope}, attempt, amount_minor, reserved_at)
  select o.charge_key, ${scope}, 1, o.amount_minor, purser.now() from o join k using (${scope}) order by o.charge_key
  returning charge_key
)
select (select ${keysUnlessAll} from o) as begun, (select ${keysUnlessAll} from r) as roomy, (select id from g) as page, ${epochMs("purser.now()")} as now_ms`
