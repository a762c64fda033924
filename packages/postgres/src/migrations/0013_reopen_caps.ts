/** A closed cap may be opened again, by an act with a reason; and a run whose process ended before its end is `interrupted`. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements: ReadonlyArray<string> = [
  `alter table purser.cap_events drop constraint cap_events_act_check,
    add constraint cap_events_act_check check (act in ('opened', 'raised', 'closed', 'reopened', 'forced'))`,
  `alter table purser.run_registry drop constraint run_registry_state_check,
    add constraint run_registry_state_check
      check (state in ('waiting', 'planned', 'running', 'paused', 'canceling', 'canceled', 'interrupted', 'finished', 'failed'))`
]

/** Applies the migration. */
export default Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})
