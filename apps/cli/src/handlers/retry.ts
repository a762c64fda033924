/** `purser retry`: takes charges that ended unpaid up again, by an explicit act that is kept with its reason. */
import { type ChargeIdentity, chargeKeyOf, type ChargeOutcome, Ledger } from "@purser/core"
import { ChargePipeline, isNoRoom, isRetryableState, retryCharge } from "@purser/engine"
import { Stores } from "@purser/purser"
import { StripeGateway } from "@purser/stripe"
import { Effect, Layer } from "effect"
import { CommandFailed, exitStatus, refused } from "../CommandFailed.ts"
import { nextStep } from "../ui/nextStep.ts"
import { note, out } from "../ui/Output.ts"
import { waitIfPaused } from "./pause.ts"

interface Act {
  readonly actor: string
  readonly reason: string
  readonly dryRun: boolean
  readonly json: boolean
}

/** Who retries one charge, why, and with what. */
export interface RetryOptions extends Act {
  readonly paymentMethod: string | undefined
}

const layer = ChargePipeline.layer.pipe(Layer.provide(StripeGateway.layerConfig), Layer.provideMerge(Stores.layerConfig))

const textOf = (outcome: ChargeOutcome) => "detail" in outcome ? `${outcome._tag}: ${outcome.detail}` : outcome._tag

/** Says what would move, moves it, and charges. */
export const retry = (identity: ChargeIdentity, options: RetryOptions) =>
  Effect.gen(function*() {
    if (!options.dryRun) yield* waitIfPaused("Charging is paused, and nothing was tried again.")
    const ledger = yield* Ledger
    const record = yield* ledger.find(chargeKeyOf(identity))
    if (record === undefined) return yield* refused("the ledger holds no such charge")
    if (!isRetryableState(record.state)) {
      return yield* refused(`the charge is ${record.state}: only declined and rejected ones, and those that wait for the customer, are tried again`)
    }
    const method = options.paymentMethod === undefined ? "" : `, with ${options.paymentMethod}`
    yield* note(`attempt ${record.attempt} of ${record.chargeKey} was ${record.state}; attempt ${record.attempt + 1} ${options.dryRun ? "would be" : "is"} asked for${method}, if there is room under the cap`)
    if (options.dryRun) return
    const outcome = yield* retryCharge(record, options).pipe(
      Effect.catchIf(isNoRoom, ({ message }) => refused(`${message}. Nobody was asked: the charge stays ${record.state} at attempt ${record.attempt}; purser cap raise or purser cap reopen makes room.`))
    )
    if (outcome === undefined) return yield* refused("somebody else has taken the charge up meanwhile")
    yield* out(options.json ? JSON.stringify(outcome) : textOf(outcome))
    if (outcome._tag === "Succeeded") return
    const after = yield* ledger.find(record.chargeKey)
    if (after !== undefined && !options.json) yield* note(nextStep(after))
    return yield* new CommandFailed({ text: "the charge is not paid", status: exitStatus.partial })
  }).pipe(Effect.scoped, Effect.provide(layer))

const page = 500

/** Tries every declined charge that is due by policy, each once. */
export const retryDue = (options: Act) =>
  Effect.gen(function*() {
    if (!options.dryRun) yield* waitIfPaused("Charging is paused, and nothing was tried again.")
    const ledger = yield* Ledger
    const counts: Record<string, number> = {}
    const tried = new Set<string>()
    for (;;) {
      const due = (yield* ledger.attemptsDue(page)).filter(({ chargeKey }) => !tried.has(chargeKey))
      if (options.dryRun) {
        for (const { attempt: before, chargeKey, request } of due) {
          yield* note(`attempt ${before + 1} of ${chargeKey}: ${request.customerId} ${request.billingPeriod} ${request.item ?? ""}`)
        }
        return yield* out(`${due.length}${due.length === page ? " or more" : ""} charges are due`)
      }
      yield* Effect.forEach(due, (record) =>
        Effect.gen(function*() {
          tried.add(record.chargeKey)
          const outcome = yield* Effect.result(retryCharge(record, options))
          const name = outcome._tag === "Failure" ? isNoRoom(outcome.failure) ? "without room" : "unresolved" : outcome.success === undefined ? "taken by others" : outcome.success._tag
          if (outcome._tag === "Failure") yield* note(`${record.chargeKey} stays ${isNoRoom(outcome.failure) ? record.state : "open"}: ${outcome.failure.message}`)
          counts[name] = (counts[name] ?? 0) + 1
        }), { concurrency: 16, discard: true })
      if (due.length < page) break
    }
    const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
    yield* out(options.json
      ? JSON.stringify({ due: total, ...counts })
      : total === 0 ? "no charge is due" : `${total} charges were due: ${Object.entries(counts).map(([name, count]) => `${count} ${name}`).join(", ")}`)
    if (total > (counts["Succeeded"] ?? 0)) {
      return yield* new CommandFailed({ text: "not all of them are paid", status: exitStatus.partial })
    }
  }).pipe(Effect.scoped, Effect.provide(layer))
