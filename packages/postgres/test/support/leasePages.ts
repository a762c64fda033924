/** Pages for charges that were not written by the ledger's statements. */

/** Half a thousand leases to a page. */
export const pagesOfLeases = `insert into purser.lease_pages (turn_at, keys)
  select min(lease_until), array_agg(charge_key)
  from (select charge_key, lease_until, (row_number() over (order by lease_until) - 1) / 512 as page from purser.charges where lease_until is not null) c group by page`

/** Those that ran out, as if their pages had been turned. */
export const pagesOfRanOut = `insert into purser.lease_pages (turn_at, ran_out, keys)
  select lease_until, true, array[charge_key] from purser.charges where lease_until <= purser.now()`

/** As many charges in pages as a busy system has, of which nearly all are settled: those of the last seconds. */
export const pagesOfSettled = (charges: number) => `insert into purser.lease_pages (turn_at, keys)
  select purser.now() + interval '5 seconds', array_agg(charge_key)
  from (select charge_key, row_number() over () / 512 as page from purser.charges where state = 'succeeded' limit ${charges}) c group by page`
