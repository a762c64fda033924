/**
 * The idempotency key of one business identity: (namespace, customer, billing period, item).
 *
 * Only the identity goes in. Nothing of a transport (socket time, counter, routing id, attempt) can reach the
 * function, because it does not take it. For parts without `%` and `:` the key equals
 * `sha256(f"{customer}:{period}:{namespace}")[:32]`, the key that existing Python workers compute.
 */
import { Schema } from "effect"
import { hash } from "node:crypto"

/** 32 lower-case hex digits. */
export const ChargeKey = Schema.String.pipe(
  Schema.check(Schema.isPattern(/^[0-9a-f]{32}$/, { message: "a charge key is 32 lower-case hex digits" })),
  Schema.brand("@purser/core/ChargeKey")
)
export type ChargeKey = typeof ChargeKey.Type

/** The namespace that existing fleets hash into their keys. */
export const defaultNamespace = "zmq-billing"

/** What makes a charge one and the same, whoever sends it, however often. */
export interface ChargeIdentity {
  readonly namespace: string
  readonly customerId: string
  readonly billingPeriod: string
  readonly item?: string | undefined
  /** How often the identity was billed anew by an explicit act; 0 when left out. */
  readonly revision?: number | undefined
}

const escapePart = (part: string): string =>
  part.includes(":") || part.includes("%") ? part.replaceAll("%", "%25").replaceAll(":", "%3A") : part

/**
 * The text that is hashed: injective over identities, since every part is free of `:` after escaping and an item is never
 * empty. A first billing has no part for its revision, so that its key is what it always was.
 */
export const chargeKeyText = (identity: ChargeIdentity): string => {
  const text = `${escapePart(identity.customerId)}:${escapePart(identity.billingPeriod)}:${escapePart(identity.namespace)}`
  const revision = identity.revision ?? 0
  const item = identity.item === undefined ? text : `${text}:${escapePart(identity.item)}`
  return revision === 0 ? item : `${item}${identity.item === undefined ? ":" : ""}:r${revision}`
}

/** The identity that a revision bills anew; `undefined` for a first billing. */
export const revisedIdentity = (identity: ChargeIdentity): ChargeIdentity | undefined =>
  (identity.revision ?? 0) === 0 ? undefined : { ...identity, revision: identity.revision! - 1 }

/** First 32 hex digits of the SHA-256 of {@link chargeKeyText}. */
export const chargeKeyOf = (identity: ChargeIdentity): ChargeKey =>
  hash("sha256", chargeKeyText(identity), "hex").slice(0, 32) as ChargeKey
