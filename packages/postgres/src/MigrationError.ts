/** Why the schema of a database cannot be brought to the state that this code needs. Nothing was changed. */
import { Schema } from "effect"

const id = (name: string) => `@purser/postgres/MigrationError/${name}`

/** A newer Purser has been here. Running an older one on its tables could lose what it does not know. */
export class SchemaTooNew extends Schema.TaggedError<SchemaTooNew>(id("SchemaTooNew"))("SchemaTooNew", {
  databaseVersion: Schema.Int,
  codeVersion: Schema.Int
}) {
  override get message() {
    return `the database has schema version ${this.databaseVersion}, this version of Purser knows ${this.codeVersion}; use a newer Purser`
  }
  get isRetryable() {
    return false
  }
}

/** The database applied another migration under this number: it is not a database of this program. */
export class SchemaDiffers extends Schema.TaggedError<SchemaDiffers>(id("SchemaDiffers"))("SchemaDiffers", {
  version: Schema.Int,
  inDatabase: Schema.String,
  inCode: Schema.String
}) {
  override get message() {
    return `migration ${this.version} is "${this.inDatabase}" in the database and "${this.inCode}" in the code`
  }
  get isRetryable() {
    return false
  }
}

/** A migration, or the statements around it, failed; everything of this run was rolled back. */
export class MigrationFailed extends Schema.TaggedError<MigrationFailed>(id("MigrationFailed"))("MigrationFailed", {
  /** The migration, or "the list of migrations". */
  migration: Schema.String,
  detail: Schema.String,
  isRetryable: Schema.Boolean
}) {
  override get message() {
    return `${this.migration} failed: ${this.detail}`
  }
}

/** Everything that running the migrations can fail with. */
export type MigrationError = SchemaTooNew | SchemaDiffers | MigrationFailed
