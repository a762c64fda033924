/** Which charge a movement is of: with the payment it tells apart the two payments of an identity that was paid twice. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Applies the migration. */
export default Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe("alter table purser.movements add column charge_id text"))
