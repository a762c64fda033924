/** What the bench itself asks a database that it measures. */

/** Stands in every such statement, so that none of them is counted. */
export const notCounted = "/* of the bench */"

/** Makes its connection tell the counts that it has kept to itself, fsyncs among them. */
export const tellCounts = `select ${notCounted} pg_stat_force_next_flush()`

/** Transactions that wrote, fsyncs of the WAL and its bytes since the cluster was made, after `tellCounts`. */
export const countColumns = `pg_snapshot_xmax(pg_current_snapshot())::text::bigint as transactions,
  (select coalesce(sum(fsyncs), 0) from pg_stat_io where object = 'wal') as fsyncs, pg_current_wal_lsn() - '0/0' as wal`
