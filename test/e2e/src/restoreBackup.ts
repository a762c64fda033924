/** A backup from before any charge: nothing of them is left. The event trail refuses to be emptied; a restore does not ask its triggers. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Forgets every charge; with `room`, what they took under their caps too. */
export const restoreBackup = (options: { readonly room: boolean } = { room: false }) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql.withTransaction(Effect.andThen(
      sql`set local session_replication_role = replica`,
      Effect.andThen(
        sql`truncate purser.charges, purser.charge_event_pages, purser.charge_objects, purser.cap_reservations`,
        Effect.when(sql`update purser.caps set reserved_minor = 0, reservations = 0`, Effect.succeed(options.room))
      )
    )))
