/** Every migration of Purser's schema, by its number and name. A migration that was released is never changed. */
import type { MigrationRecord } from "../Migrations.ts"
import createSchema from "./0001_create_schema.ts"
import createLedger from "./0002_create_ledger.ts"
import createCapFunctions from "./0003_create_cap_functions.ts"
import createDeadLetters from "./0004_create_dead_letters.ts"
import createRefunds from "./0005_create_refunds.ts"
import createPauses from "./0006_create_pauses.ts"
import createWatch from "./0007_create_watch.ts"
import createFeed from "./0008_create_feed.ts"
import addMovementCharge from "./0009_add_movement_charge.ts"
import createRunRegistry from "./0010_create_run_registry.ts"
import createDunning from "./0011_create_dunning.ts"
import createConsole from "./0012_create_console.ts"
import reopenCaps from "./0013_reopen_caps.ts"
import extendConsole from "./0014_extend_console.ts"
import hashRunRows from "./0015_hash_run_rows.ts"

/** Keys are `0001_verb_noun`, in the order in which they run. */
export const migrations: MigrationRecord = {
  "0001_create_schema": createSchema,
  "0002_create_ledger": createLedger,
  "0003_create_cap_functions": createCapFunctions,
  "0004_create_dead_letters": createDeadLetters,
  "0005_create_refunds": createRefunds,
  "0006_create_pauses": createPauses,
  "0007_create_watch": createWatch,
  "0008_create_feed": createFeed,
  "0009_add_movement_charge": addMovementCharge,
  "0010_create_run_registry": createRunRegistry,
  "0011_create_dunning": createDunning,
  "0012_create_console": createConsole,
  "0013_reopen_caps": reopenCaps,
  "0014_extend_console": extendConsole,
  "0015_hash_run_rows": hashRunRows
}
