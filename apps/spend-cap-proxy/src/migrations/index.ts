/** The migrations of the proxy's own store, by number. A migration that was published is never edited. */
import type { Migrations } from "@purser/postgres"
import createVaults from "./0001_create_vaults.ts"
import createDecisions from "./0002_create_decisions.ts"

/** Every migration of the proxy. */
export const migrations: Migrations.MigrationRecord = {
  "0001_create_vaults": createVaults,
  "0002_create_decisions": createDecisions
}
