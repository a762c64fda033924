/** A vault as people see it, what makes one, and a line of the audit trail. Amounts are integers of minor units. */
import { Schema } from "effect"

/** What a new vault is made of. */
export const NewVault = Schema.Struct({
  name: Schema.String,
  billingPeriod: Schema.NonEmptyString,
  currency: Schema.NonEmptyString,
  expectedMinor: Schema.Int,
  headroomPercent: Schema.Int,
  /** `METHOD:PATH` entries; empty for the default list. */
  allow: Schema.Array(Schema.String),
  /** Null allows every customer. */
  customers: Schema.NullOr(Schema.Array(Schema.NonEmptyString)),
  maxPerChargeMinor: Schema.NullOr(Schema.Int),
  maxCalls: Schema.NullOr(Schema.Int),
  duplicateGuard: Schema.Boolean,
  /** Of the first key: milliseconds since 1970, or null for no end. */
  expiresAtMs: Schema.NullOr(Schema.Int),
  /** Why this period and currency needs a second cap beside the vault that it has. */
  separateReason: Schema.optionalKey(Schema.NonEmptyString)
})
/** See the schema. */
export type NewVault = typeof NewVault.Type

/** What another key of a vault is made of. */
export const NewKey = Schema.Struct({
  vault: Schema.String,
  /** Ends every key that the vault has so far. */
  revokesOthers: Schema.Boolean,
  /** Milliseconds since 1970, or null for no end. */
  expiresAtMs: Schema.NullOr(Schema.Int),
  reason: Schema.String
})
/** See the schema. */
export type NewKey = typeof NewKey.Type

/** A key of a vault, by its last four characters. */
export const KeyOfVault = Schema.Struct({
  hint: Schema.String,
  expiresAtMs: Schema.NullOr(Schema.Int),
  revokedAtMs: Schema.NullOr(Schema.Int),
  createdAtMs: Schema.Int
})
/** See the schema. */
export type KeyOfVault = typeof KeyOfVault.Type

/** A vault and what it has used. `heldMinor`: may still be paid; `paidMinor`: was. All its keys share these figures. */
export const Vault = Schema.Struct({
  id: Schema.String,
  /** Oldest first. */
  keys: Schema.Array(KeyOfVault),
  /** True for a second cap of its period and currency. */
  separate: Schema.Boolean,
  name: Schema.String,
  billingPeriod: Schema.String,
  currency: Schema.String,
  expectedMinor: Schema.Int,
  headroomPercent: Schema.Int,
  capMinor: Schema.Int,
  heldMinor: Schema.Int,
  paidMinor: Schema.Int,
  refundedMinor: Schema.Int,
  payments: Schema.Int,
  calls: Schema.Int,
  maxCalls: Schema.NullOr(Schema.Int),
  maxPerChargeMinor: Schema.NullOr(Schema.Int),
  allow: Schema.Array(Schema.String),
  customers: Schema.NullOr(Schema.Array(Schema.String)),
  duplicateGuard: Schema.Boolean,
  createdAtMs: Schema.Int,
  /** The global switch, at the same moment. */
  killed: Schema.Boolean
})
/** See the schema. */
export type Vault = typeof Vault.Type

/** A line of the audit trail. A `result` names the `decision` (a `seq`) that it follows. */
export const AuditLine = Schema.Struct({
  seq: Schema.Int,
  atMs: Schema.Int,
  vault: Schema.NullOr(Schema.String),
  act: Schema.String,
  decision: Schema.NullOr(Schema.Int),
  method: Schema.NullOr(Schema.String),
  path: Schema.NullOr(Schema.String),
  amountMinor: Schema.NullOr(Schema.Int),
  currency: Schema.NullOr(Schema.String),
  customer: Schema.NullOr(Schema.String),
  idempotencyKey: Schema.NullOr(Schema.String),
  verdict: Schema.String,
  code: Schema.NullOr(Schema.String),
  status: Schema.NullOr(Schema.Int),
  requestId: Schema.NullOr(Schema.String),
  detail: Schema.NullOr(Schema.String)
})
/** See the schema. */
export type AuditLine = typeof AuditLine.Type
