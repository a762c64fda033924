/** What the proxy's store refuses or fails with. None of these holds a key. */
import { Schema } from "effect"

const id = (name: string) => `@purser/spend-cap-proxy/VaultStoreError/${name}`

/** The database did not answer, or failed. Nothing is forwarded without it. */
export class VaultStoreUnavailable extends Schema.TaggedError<VaultStoreUnavailable>(id("VaultStoreUnavailable"))("VaultStoreUnavailable", {
  operation: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `the vault store is unavailable for ${this.operation}: ${this.detail}`
  }
  get isRetryable() {
    return true
  }
}

/** There is no vault with this id. */
export class VaultMissing extends Schema.TaggedError<VaultMissing>(id("VaultMissing"))("VaultMissing", { vault: Schema.String }) {
  override get message() {
    return `there is no vault ${this.vault}`
  }
  get isRetryable() {
    return false
  }
}

/** A vault cannot be made or changed like this. */
export class VaultRefused extends Schema.TaggedError<VaultRefused>(id("VaultRefused"))("VaultRefused", { detail: Schema.String }) {
  override get message() {
    return this.detail
  }
  get isRetryable() {
    return false
  }
}

/** Everything that the store can fail with. */
export const VaultStoreErrorReason = Schema.Union([VaultStoreUnavailable, VaultMissing, VaultRefused])

/** The store's refusal or failure. */
export class VaultStoreError extends Schema.TaggedError<VaultStoreError>("@purser/spend-cap-proxy/VaultStoreError")("VaultStoreError", {
  reason: VaultStoreErrorReason
}) {
  override get message() {
    return this.reason.message
  }
  get isRetryable() {
    return this.reason.isRetryable
  }
}
