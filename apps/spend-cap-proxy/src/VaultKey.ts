/**
 * Vault keys: `vk_` and 48 random hexadecimal digits. The store holds their SHA-256 alone, which is enough for a secret of
 * 192 random bits; the key itself is shown once, when it is made.
 */
import { Redacted } from "effect"
import { createHash, randomBytes } from "node:crypto"

/** A new key. */
export interface NewVaultKey {
  readonly key: Redacted.Redacted
  /** The last four characters. */
  readonly hint: string
}

/** What looks like a key, wherever it stands. */
export const vaultKeyPattern = /vk_[0-9a-f]{48}/

/** The same text without keys, for what is kept. */
export const withoutVaultKeys = (text: string | null): string | null => text?.replaceAll(new RegExp(vaultKeyPattern, "g"), "vk_…") ?? null

/** Makes a key. */
export const makeVaultKey = (): NewVaultKey => {
  const key = `vk_${randomBytes(24).toString("hex")}`
  return { key: Redacted.make(key), hint: key.slice(-4) }
}

/** The id of a new vault, which may be shown. */
export const makeVaultId = (): string => `vault_${randomBytes(6).toString("hex")}`

/** The SHA-256 under which the store knows a key. */
export const hashVaultKey = (key: Redacted.Redacted): string => createHash("sha256").update(Redacted.value(key)).digest("hex")

/** The key of an `Authorization` header, as Bearer token or as the user of Basic authentication; `undefined` when there is none. */
export const vaultKeyOf = (authorization: string | undefined): Redacted.Redacted | undefined => {
  const bearer = /^Bearer +(\S+) *$/i.exec(authorization ?? "")?.[1]
  const basic = /^Basic +(\S+) *$/i.exec(authorization ?? "")?.[1]
  const key = bearer ?? (basic === undefined ? undefined : Buffer.from(basic, "base64").toString("utf8").split(":")[0])
  return key === undefined || key === "" ? undefined : Redacted.make(key)
}
