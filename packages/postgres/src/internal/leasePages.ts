/**
 * Who has a lease, without an index on the charges: pages of keys, which `0002_create_ledger` explains. Each statement that sets a
 * lease writes its page; a page that is due is turned.
 */
/** A page waits no longer: most of its charges are settled by then. */
const longest = "interval '5 seconds'"

/** The page of a batch's leases: it is turned when most of its charges are settled, and no later than the first lease ends. */
export const writePage = (from: string) =>
  `insert into purser.lease_pages (turn_at, keys)
  select least(min(lease_until), purser.now() + ${longest}), array_agg(charge_key::text) from ${from} where lease_until is not null having count(*) > 0`

/** A part that drops pages of which nothing is left, by a charge of each: a database that was set back gives a number to another page. */
export const dropPages = (pages: string, charges: string) => `x as (delete from purser.lease_pages where id = any(${pages}::bigint[]) and keys && ${charges}::text[])`

/** The same of charges that are all leased from now on, where `from` has a row. */
export const writeLeases = (keys: string, lease: string, from: string) =>
  `insert into purser.lease_pages (turn_at, keys) select purser.now() + least(${lease}, ${longest}), ${keys} from ${from}`

/** The keys of the pages, with those of charges that were settled since. */
export const leased = (where = "true") => `(select distinct unnest(p.keys) as charge_key from purser.lease_pages p where ${where})`

/** The charges in work, and those that wait for their payment: each is looked up by its key. */
export const chargesWithLease = (where?: string) =>
  `${leased(where)} k cross join lateral (select * from purser.charges q where q.charge_key = k.charge_key and q.lease_until is not null offset 0)`

/**
 * pages. Turns those that are due: charges whose lease lasts go into pages of later, five seconds of leases to a page, and each whose
 * lease ran out into one of its own. A lease that somebody sets meanwhile has its own page, as all have.
 */
export const turnPages = `with t as materialized (select purser.now() as now),
d as materialized (
  delete from purser.lease_pages where ctid = any(array(
    select ctid from purser.lease_pages where not ran_out and turn_at <= purser.now() order by turn_at limit $1::integer for update skip locked))
  returning keys
),
k as materialized (select distinct unnest(keys) as charge_key from d),
h as materialized (
  select k.charge_key, c.lease_until, c.lease_until <= t.now as ran_out, floor(extract(epoch from c.lease_until) / 5) as bucket
  from k cross join t cross join lateral (select c.lease_until from purser.charges c where c.charge_key = k.charge_key and c.lease_until is not null offset 0) c
),
g as (
  insert into purser.lease_pages (turn_at, ran_out, keys)
  select lease_until, true, array[charge_key] from h where ran_out
  union all
  select min(lease_until), false, array_agg(charge_key::text)
  from (select *, (row_number() over (partition by bucket) - 1) / 512 as part from h where not ran_out) p group by bucket, part
)
select (select count(*) from d)::integer as turned`
