/**
 * Why a database cannot be used. None of these holds a password or a whole URL: `database` is a label that is safe to log.
 */
import { Schema } from "effect"

const id = (name: string) => `@purser/postgres/DatabaseError/${name}`

/** Another process (or this one) has the data folder open. Only one may; nothing was read or changed. */
export class DatabaseInUse extends Schema.TaggedError<DatabaseInUse>(id("DatabaseInUse"))("DatabaseInUse", {
  dataDir: Schema.String,
  pid: Schema.optionalKey(Schema.Int),
  host: Schema.optionalKey(Schema.String)
}) {
  override get message() {
    const owner = this.pid === undefined ? "another process" : `process ${this.pid}${this.host === undefined ? "" : ` on ${this.host}`}`
    return `the data folder ${this.dataDir} is in use by ${owner}; several processes need a PostgreSQL server (PURSER_DATABASE_URL)`
  }
  get isRetryable() {
    return false
  }
}

/** No database at that address, no way in, or a folder that cannot be opened. */
export class DatabaseUnavailable extends Schema.TaggedError<DatabaseUnavailable>(id("DatabaseUnavailable"))("DatabaseUnavailable", {
  database: Schema.String,
  detail: Schema.String,
  isRetryable: Schema.Boolean
}) {
  override get message() {
    return `the database ${this.database} is not available: ${this.detail}`
  }
}

/** Everything that opening a database can fail with. */
export type DatabaseError = DatabaseInUse | DatabaseUnavailable
