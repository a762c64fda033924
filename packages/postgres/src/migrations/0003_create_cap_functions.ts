/**
 * Reserve and release as functions of the database: each takes the row lock of its caps first, and only then looks at
 * the reservations. In one plain statement both would share a snapshot from before the lock, and a reservation that
 * another process made while we waited would be counted twice. A function's statements each see what is committed.
 *
 * Caps are locked in the order of their key, so that two batches cannot wait for each other, and after the charges whose rows are written, as whoever settles
 * a charge does.
 *
 * Room that was taken with a first claim is noted in its charge, which costs that nothing: a row in a table of its own, under a random key, took a sixth of the claim.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** A first claim that takes room fails as a whole where there is none, and is made without: its charge says from the start that it has room. */
export const noRoom = "PU001"
const refuseRoom = `create function purser.refuse_room() returns text[] language plpgsql as $$
begin
  raise exception 'no room under the cap' using errcode = '${noRoom}';
end $$`

/** Whether somebody holds room for one of the charges that was not taken with its first claim; as of now, and not of the statement that asks. */
const anyReserved = `create function purser.any_reserved(keys text[]) returns boolean language plpgsql volatile as $$
begin
  return exists (select 1 from unnest(keys) as u(k) cross join lateral (select 1 from purser.cap_reservations r where r.charge_key = u.k offset 0) r);
end $$`

/** True of every key. The planner takes it to hold for few, and looks each of them up: else it reads all reservations for a batch while they are some ten thousand. */
const few = "u.k || '' = u.k"

/** Whether the charge of the key `u.k` says that it holds room. */
const withMark = "left join lateral (select true as holds from purser.charges c where c.charge_key = u.k and c.room_attempt is not null offset 0) m on true"

const reserve = `create function purser.reserve(
  keys text[], namespaces text[], periods text[], currencies text[], attempts integer[], amounts bigint[], forced boolean[]
) returns table (ord integer, verdict text, cap_minor bigint, reserved_minor bigint)
language plpgsql as $$
declare
  cap record;
  wish record;
  taken bigint;
  added bigint;
  wished bigint;
  got text[];
begin
  -- Those that it marks at the end, before the caps: a late payment is settled in this order too.
  perform 1 from purser.charges c join unnest(keys, attempts) as u(k, a) on c.charge_key = u.k
    where ${few} and (c.state in ('declined', 'rejected', 'canceled') or c.room_attempt < u.a) order by c.charge_key for update of c;

  perform 1 from purser.caps c
    where (c.namespace, c.billing_period, c.currency) in (select * from unnest(namespaces, periods, currencies))
    order by c.namespace, c.billing_period, c.currency
    for update;

  -- A key that holds room keeps it; the reservation belongs to the highest attempt.
  update purser.cap_reservations r set attempt = greatest(r.attempt, w.attempt)
    from (select distinct on (k) k, a as attempt from unnest(keys, attempts) as u(k, a) where ${few} order by k, a desc) w
    where r.charge_key = w.k and r.attempt < w.attempt;
  update purser.charges c set room_attempt = w.attempt
    from (select k, max(a) as attempt from unnest(keys, attempts) as u(k, a) where ${few} group by k) w
    where c.charge_key = w.k and c.room_attempt < w.attempt;

  for cap in
    select w.namespace, w.billing_period, w.currency, c.cap_minor::bigint as lid, c.reserved_minor::bigint as held, c.closed, c.namespace is not null as open
    from (select distinct u.namespace, u.billing_period, u.currency
          from unnest(namespaces, periods, currencies) as u(namespace, billing_period, currency)) w
    -- Also one that was opened while this waited for the others: its lock is taken here.
    left join lateral (
      select * from purser.caps x
      where x.namespace = w.namespace and x.billing_period = w.billing_period and x.currency = w.currency for update
    ) c on true
    order by w.namespace, w.billing_period, w.currency
  loop
    taken := cap.held;
    added := 0;
    wished := (select sum(u.amount) from unnest(namespaces, periods, currencies, amounts) as u(namespace, billing_period, currency, amount)
      where u.namespace = cap.namespace and u.billing_period = cap.billing_period and u.currency = cap.currency);
    if cap.open and not cap.closed and wished <= cap.lid - taken then
      -- All fit, whoever of them holds room already: one statement takes what is new.
      with n as (
        insert into purser.cap_reservations (charge_key, namespace, billing_period, currency, attempt, amount_minor, reserved_at)
        select u.k, cap.namespace, cap.billing_period, cap.currency, u.attempt, u.amount, purser.now()
        from unnest(keys, namespaces, periods, currencies, attempts, amounts) as u(k, namespace, billing_period, currency, attempt, amount)
        ${withMark}
        where u.namespace = cap.namespace and u.billing_period = cap.billing_period and u.currency = cap.currency and m.holds is null
        order by u.k
        on conflict (charge_key) do nothing
        returning charge_key, amount_minor
      )
      select array_agg(n.charge_key::text), coalesce(sum(n.amount_minor), 0)::bigint, count(*) into got, wished, added from n;
      taken := taken + wished;
      return query
        select u.ord::integer, case when g.k is null then 'held' else 'reserved' end, cap.lid, taken
        from unnest(keys, namespaces, periods, currencies) with ordinality as u(k, namespace, billing_period, currency, ord)
        left join unnest(got) as g(k) on g.k = u.k
        where u.namespace = cap.namespace and u.billing_period = cap.billing_period and u.currency = cap.currency;
    else
    for wish in
      select u.ord::integer, u.k, u.attempt, u.amount, u.force, r.charge_key is not null or m.holds is not null as holds
      from unnest(keys, namespaces, periods, currencies, attempts, amounts, forced) with ordinality
        as u(k, namespace, billing_period, currency, attempt, amount, force, ord)
      left join lateral (select r.charge_key from purser.cap_reservations r where r.charge_key = u.k offset 0) r on true
      ${withMark}
      where u.namespace = cap.namespace and u.billing_period = cap.billing_period and u.currency = cap.currency
      order by u.ord
    loop
      ord := wish.ord;
      cap_minor := cap.lid;
      reserved_minor := taken;
      if not cap.open and (wish.force or not wish.holds) then
        verdict := 'missing';
        if wish.force then
          insert into purser.cap_uncovered (charge_key, namespace, billing_period, currency, attempt, amount_minor, noted_at)
            values (wish.k, cap.namespace, cap.billing_period, cap.currency, wish.attempt, wish.amount, purser.now())
            on conflict (charge_key) do nothing;
        end if;
      elsif wish.holds then
        verdict := 'held';
        -- Others took the cap over, and not this one.
        if wish.force and not exists (select 1 from purser.cap_events e where e.charge_key = wish.k and e.act = 'forced') then
          reserved_minor := least(taken, cap.lid);
        end if;
      elsif cap.closed and not wish.force then
        verdict := 'closed';
      elsif wish.amount > cap.lid - taken and not wish.force then
        verdict := 'exceeded';
      else
        insert into purser.cap_reservations (charge_key, namespace, billing_period, currency, attempt, amount_minor, reserved_at)
          values (wish.k, cap.namespace, cap.billing_period, cap.currency, wish.attempt, wish.amount, purser.now())
          on conflict (charge_key) do nothing;
        if found then
          taken := taken + wish.amount;
          added := added + 1;
          reserved_minor := taken;
          verdict := 'reserved';
          if taken > cap.lid then
            insert into purser.cap_events (at, namespace, billing_period, currency, act, cap_minor, charge_key, reason)
              values (purser.now(), cap.namespace, cap.billing_period, cap.currency, 'forced', cap.lid, wish.k,
                (taken - cap.lid) || ' over the cap: the money had moved');
          end if;
        else
          verdict := 'held';
        end if;
      end if;
      return next;
    end loop;
    end if;
    if added > 0 then
      update purser.caps c set reserved_minor = taken, reservations = c.reservations + added, reserved_apart = true
        where c.namespace = cap.namespace and c.billing_period = cap.billing_period and c.currency = cap.currency;
    end if;
  end loop;

  -- Whoever took the charge over may have settled it unpaid, and given its room back, before this: then a sweep gives it back once more. A row that is marked
  -- already is written too, so that who is about to take the mark away finds another version.
  update purser.charges c set release_due = true
    from unnest(keys, attempts) as u(k, a)
    where ${few} and c.charge_key = u.k and c.state in ('declined', 'rejected', 'canceled') and c.attempt >= u.a;
end $$`

const release = `create function purser.release(keys text[], attempts integer[]) returns void
language plpgsql as $$
begin
  perform 1 from purser.charges c join unnest(keys) as u(k) on c.charge_key = u.k
    where ${few} and c.room_attempt is not null order by c.charge_key for update of c;

  perform 1 from purser.caps c
    where (c.namespace, c.billing_period, c.currency) in (
      select r.namespace, r.billing_period, r.currency from unnest(keys) as u(k)
      cross join lateral (
        select r.namespace, r.billing_period, r.currency from purser.cap_reservations r where r.charge_key = u.k
        union all
        select m.namespace, m.billing_period, m.currency from purser.charges m where m.charge_key = u.k and m.room_attempt is not null
        offset 0
      ) r)
    order by c.namespace, c.billing_period, c.currency
    for update;

  with gone as (
    delete from purser.cap_reservations r
    using (select distinct on (k) k, a as attempt from unnest(keys, attempts) as u(k, a) where ${few} order by k, a desc) w
    where r.charge_key = w.k and r.attempt <= w.attempt
      -- Paid after all, and its room taken again, since it was found to be unpaid.
      and not exists (select 1 from purser.charges c where c.charge_key = w.k and c.state = 'succeeded')
    returning r.namespace, r.billing_period, r.currency, r.amount_minor
  ), unmarked as (
    update purser.charges c set room_attempt = null
    from (select k, max(a) as attempt from unnest(keys, attempts) as u(k, a) where ${few} group by k) w
    where c.charge_key = w.k and c.room_attempt <= w.attempt and c.state <> 'succeeded'
    returning c.namespace, c.billing_period, c.currency, c.amount_minor
  ), sums as (
    select g.namespace, g.billing_period, g.currency, sum(g.amount_minor)::bigint as amount_minor, count(*) as reservations
    from (select * from gone union all select * from unmarked) g group by 1, 2, 3
  )
  update purser.caps c set reserved_minor = c.reserved_minor - s.amount_minor, reservations = c.reservations - s.reservations
    from sums s
    where c.namespace = s.namespace and c.billing_period = s.billing_period and c.currency = s.currency;

  delete from purser.cap_uncovered q using unnest(keys, attempts) as u(k, a) where q.charge_key = u.k and q.attempt <= u.a;
end $$`

/** Applies the migration. */
export default Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  yield* sql.unsafe(refuseRoom)
  yield* sql.unsafe(anyReserved)
  yield* sql.unsafe(reserve)
  yield* sql.unsafe(release)
})
