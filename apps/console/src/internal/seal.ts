/** What proves something without being kept anywhere: digests for comparing secrets, and sealed texts for cookies. */
import { Redacted } from "effect"
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto"

/** Compares in a time that tells nothing of either text, their lengths included. */
export const isSame = (a: string, b: string): boolean =>
  timingSafeEqual(createHash("sha256").update(a).digest(), createHash("sha256").update(b).digest())

/**
 * A key for sealing. From secrets that are kept elsewhere, so that another token ends every sign-in and several processes
 * understand each other's proofs. Without any it is this process's own: no other one understands its proofs, nor does it
 * after a restart.
 */
export const sealingKey = (secrets: ReadonlyArray<Redacted.Redacted>): Redacted.Redacted<Buffer> => {
  const mac = createHmac("sha256", "purser console")
  for (const secret of secrets) mac.update(createHash("sha256").update(Redacted.value(secret)).digest())
  return Redacted.make(secrets.length === 0 ? randomBytes(32) : mac.digest())
}

/** A proof of this text for one purpose. */
export const proofOf = (key: Redacted.Redacted<Buffer>, purpose: string, text: string): string =>
  createHmac("sha256", Redacted.value(key)).update(purpose).update("\0").update(text).digest("base64url")

/** The text with its proof. */
export const seal = (key: Redacted.Redacted<Buffer>, text: string): string => {
  const body = Buffer.from(text).toString("base64url")
  return `${body}.${proofOf(key, "cookie", body)}`
}

/** The text of a seal that is ours; undefined for any other. */
export const unseal = (key: Redacted.Redacted<Buffer>, sealed: string): string | undefined => {
  const [body, proof, ...more] = sealed.split(".")
  if (body === undefined || proof === undefined || more.length > 0 || !isSame(proof, proofOf(key, "cookie", body))) return undefined
  return Buffer.from(body, "base64url").toString()
}
