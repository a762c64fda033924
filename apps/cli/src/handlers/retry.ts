/** `purser retry`: takes one declined or rejected charge up again, by an explicit act that is kept with its reason. */
import { type ChargeIdentity, chargeKeyOf, Ledger } from "@purser/core"
import { ChargePipeline } from "@purser/engine"
import { Stores } from "@purser/purser"
import { StripeGateway } from "@purser/stripe"
import { Effect, Layer } from "effect"
import { CommandFailed, exitStatus, refused } from "../CommandFailed.ts"
import { note, out } from "../ui/Output.ts"

/** Who retries, and why. */
export interface RetryOptions {
  readonly actor: string
  readonly reason: string
  readonly dryRun: boolean
}

/** Says what would move, moves it, and charges. */
export const retry = (identity: ChargeIdentity, options: RetryOptions) =>
  Effect.gen(function*() {
    const ledger = yield* Ledger
    const pipeline = yield* ChargePipeline
    const chargeKey = chargeKeyOf(identity)
    const record = yield* ledger.find(chargeKey)
    if (record === undefined) return yield* refused("the ledger holds no such charge")
    if (record.state !== "declined" && record.state !== "rejected") {
      return yield* refused(`the charge is ${record.state}: only declined and rejected ones are tried again`)
    }
    yield* note(`${record.state} attempt ${record.attempt} of ${chargeKey} becomes attempt ${record.attempt + 1}`)
    if (options.dryRun) return
    // The room of the old attempt goes back before the new one asks for its own.
    yield* pipeline.releaseDue(1000)
    yield* ledger.reopen({ chargeKeys: [chargeKey], from: [record.state], actor: options.actor, reason: options.reason })
    const outcome = yield* pipeline.charge(record.request)
    yield* out("detail" in outcome ? `${outcome._tag}: ${outcome.detail}` : outcome._tag)
    if (outcome._tag !== "Succeeded") {
      return yield* new CommandFailed({ text: "the charge is not paid", status: exitStatus.partial })
    }
  }).pipe(
    Effect.provide(
      ChargePipeline.layer.pipe(Layer.provide(StripeGateway.layerConfig), Layer.provideMerge(Stores.layerConfig))
    )
  )
