/**
 * What the host does when dunning gives a charge up: cancel a subscription, write a letter, mark an invoice. It is done at
 * least once, and may be done again after a crash: the case's id is the key to tell a repeat by.
 */
import type { DunningCase, ChargeRecord } from "@purser/core"
import { Context, type Effect, Layer } from "effect"

/** A case whose time is over. */
export interface GivenUp {
  readonly case: DunningCase
  readonly record: ChargeRecord
}

/** The host's part. Without a layer of this service nothing is done. */
export class DunningHooks extends Context.Service<DunningHooks, {
  /** The final action. A failure is tried again later; the case stays open until then. */
  readonly givenUp: (ended: GivenUp) => Effect.Effect<void, { readonly message: string }>
}>()("@purser/engine/DunningHooks") {
  /** Hooks of the program. */
  static readonly layer = (hooks: DunningHooks["Service"]): Layer.Layer<DunningHooks> => Layer.succeed(DunningHooks, hooks)
}
