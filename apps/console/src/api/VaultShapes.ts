/** What the API speaks of the spend-cap proxy's vaults, as schemas: parts of the proxy's own. */
import { AuditLine, Vault as WholeVault } from "@purser/spend-cap-proxy/Vault"
import { Schema, Struct } from "effect"

/** A vault of the spend-cap proxy. Of its keys only the last characters are known to anybody but their holders. */
export const Vault = Schema.Struct(Struct.pick(WholeVault.fields, [
  "id", "name", "billingPeriod", "currency", "separate", "capMinor", "heldMinor", "paidMinor", "refundedMinor", "payments", "calls", "maxCalls", "createdAtMs", "keys"
]))
export type Vault = typeof Vault.Type

/** A line of the proxy's audit trail. */
export const VaultLine = Schema.Struct(Struct.pick(AuditLine.fields, [
  "seq", "atMs", "vault", "act", "path", "amountMinor", "currency", "customer", "verdict", "code", "requestId", "detail"
]))

/** The vaults, and whether every key is switched off. */
export const Vaults = Schema.Struct({ vaults: Schema.Array(Vault), killed: Schema.Boolean, log: Schema.Array(VaultLine) })
export type Vaults = typeof Vaults.Type
