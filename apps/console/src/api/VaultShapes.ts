/** What the API speaks of the spend-cap proxy's vaults, as schemas. */
import { Schema } from "effect"
import { NullText, NullTime } from "./Words.ts"

/** A vault of the spend-cap proxy. Of its keys only the last characters are known to anybody but their holders. */
export const Vault = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  billingPeriod: Schema.String,
  currency: Schema.String,
  separate: Schema.Boolean,
  capMinor: Schema.Int,
  heldMinor: Schema.Int,
  paidMinor: Schema.Int,
  refundedMinor: Schema.Int,
  payments: Schema.Int,
  calls: Schema.Int,
  maxCalls: Schema.NullOr(Schema.Int),
  createdAtMs: Schema.Finite,
  keys: Schema.Array(Schema.Struct({ hint: Schema.String, expiresAtMs: NullTime, revokedAtMs: NullTime, createdAtMs: Schema.Finite }))
})
export type Vault = typeof Vault.Type

/** A line of the proxy's audit trail. */
export const VaultLine = Schema.Struct({
  seq: Schema.Int,
  atMs: Schema.Finite,
  vault: NullText,
  act: Schema.String,
  path: NullText,
  amountMinor: Schema.NullOr(Schema.Int),
  currency: NullText,
  customer: NullText,
  verdict: Schema.String,
  code: NullText,
  detail: NullText
})

/** The vaults, and whether every key is switched off. */
export const Vaults = Schema.Struct({ vaults: Schema.Array(Vault), killed: Schema.Boolean, log: Schema.Array(VaultLine) })
export type Vaults = typeof Vaults.Type
