/**
 * The acts that ask the processor: a charge tried again, a charge that is gone on with, a period that is compared. A console
 * without a key to the processor has no desk, and everything else works.
 */
import { Attention, ChargeKey, ChargePause, type ChargeOutcome, type ChargeRecord, Ledger, type OperatorReason, parsePeriod, type PipelineError, type SpendCap } from "@purser/core"
import { ChargePipeline, type Difference, isNoRoom, Reconciler, type ReconcileOptions, retryCharge } from "@purser/engine"
import { Cause, Clock, Config, Context, Effect, Exit, Layer, Ref, Result, Schema } from "effect"
import { ActRefused, Away, NotThere } from "./api/ConsoleError.ts"
import type { Reconciliation } from "./api/Shapes.ts"

/** Why an act of the desk did not come to an end. */
export type DeskError = ActRefused | Away | NotThere

/** Differences that are kept for the page; the command's report has all of them. */
const differencesMax = 1000

const away = (error: { readonly message: string }) => new Away({ message: error.message })
const isKey = Schema.is(ChargeKey)

/** What the ledger forbids is a refusal, and so is a cap without room; of anything else nobody knows what it did. */
const refusalOf = (error: PipelineError): DeskError =>
  isNoRoom(error) || error._tag === "LedgerError" && ["ChargeQuarantined", "ChargeInProgress", "ChargeConflict"].includes(error.reason._tag) ? new ActRefused({ message: error.message }) : away(error)

/** States that an explicit act takes up again. */
export const isRetryable = (state: ChargeRecord["state"]): state is "declined" | "rejected" | "requires_action" =>
  state === "declined" || state === "rejected" || state === "requires_action"

/** States that are gone on with. */
export const isOpen = (state: ChargeRecord["state"]): boolean => state === "planned" || state === "claimed" || state === "attached" || state === "processing"

const textOf = (outcome: ChargeOutcome): string => {
  const name = { Succeeded: "It is paid", Processing: "Stripe settles it later", RequiresAction: "The customer has to authenticate", Declined: "It was declined", Rejected: "It was refused", Canceled: "It was canceled" }[outcome._tag]
  return "detail" in outcome && outcome.detail !== "" ? `${name}: ${outcome.detail}` : `${name}.`
}

/** The desk. */
export class ProcessorDesk extends Context.Service<ProcessorDesk, {
  /** Takes a charge that ended unpaid up again and charges it. */
  readonly retry: (chargeKey: string, by: OperatorReason, paymentMethod: string | undefined) => Effect.Effect<string, DeskError>
  /** Goes on with a charge that nobody holds, also where it was handed back for later. */
  readonly resume: (chargeKey: string, by: OperatorReason) => Effect.Effect<string, DeskError>
  /** Starts a comparison; one at a time. It goes on when nobody looks. */
  readonly reconcile: (options: Pick<ReconcileOptions, "sinceMs" | "dryRun"> & { readonly billingPeriod: string }, by: OperatorReason) => Effect.Effect<void, DeskError>
  /** The last comparison, or the one that is under way. */
  readonly comparison: Effect.Effect<Reconciliation | null>
}>()("@purser/console/ProcessorDesk") {
  /** Over the engine that the app provides; what a period is, `PURSER_PERIOD_LABELS` says. */
  static readonly layer: Layer.Layer<ProcessorDesk, Config.ConfigError, Attention | Ledger | ChargePause | ChargePipeline | Reconciler | SpendCap> = Layer.effect(
    ProcessorDesk,
    Effect.gen(function*() {
      const attention = yield* Attention
      const ledger = yield* Ledger
      const pause = yield* ChargePause
      const pipeline = yield* ChargePipeline
      const onEngine = Effect.provideContext(yield* Effect.context<Ledger | ChargePipeline | SpendCap>())
      const reconciler = yield* Reconciler
      const labels = yield* Config.Literals(["calendar", "opaque"], "PURSER_PERIOD_LABELS").pipe(Config.withDefault("calendar" as const))
      const scope = yield* Effect.scope
      const last = yield* Ref.make<Reconciliation | null>(null)

      const record = Effect.fnUntraced(function*(key: string): Effect.fn.Return<ChargeRecord, DeskError> {
        const found = isKey(key) ? yield* Effect.mapError(ledger.find(key), away) : undefined
        return found ?? (yield* new NotThere({ message: "the ledger holds no such charge" }))
      })
      // A charge that waits for the switch would keep the person waiting, who can throw it.
      const whenOpen = Effect.mapError(pause.inForce, away).pipe(
        Effect.flatMap((pauses) => pauses.length === 0 ? Effect.void : Effect.fail(new ActRefused({ message: "charging is paused: resume it first" })))
      )
      const charged = (effect: Effect.Effect<ChargeOutcome, PipelineError>) => Effect.mapBoth(effect, { onFailure: refusalOf, onSuccess: textOf })

      return ProcessorDesk.of({
        retry: Effect.fn("ProcessorDesk.retry")(function*(chargeKey, { actor, reason }, paymentMethod) {
          yield* whenOpen
          const found = yield* record(chargeKey)
          if (!isRetryable(found.state)) return yield* new ActRefused({ message: `the charge is ${found.state}: only what ended unpaid is tried again` })
          const outcome = yield* Effect.mapError(onEngine(retryCharge(found, { actor, reason, paymentMethod })), refusalOf)
          return outcome === undefined ? yield* new ActRefused({ message: "somebody else has taken the charge up meanwhile" }) : textOf(outcome)
        }),
        resume: Effect.fn("ProcessorDesk.resume")(function*(chargeKey, by) {
          yield* whenOpen
          const found = yield* record(chargeKey)
          if (found.quarantine !== null) return yield* new ActRefused({ message: "the charge is quarantined: look at both sides first" })
          if (!isOpen(found.state)) return yield* new ActRefused({ message: `the charge is ${found.state} already` })
          if (found.state !== "processing") {
            yield* Effect.mapError(attention.hasten(found.chargeKey, by), away)
            return yield* charged(pipeline.charge(found.request))
          }
          const taken = yield* Effect.mapError(ledger.takeWaiting(found.chargeKey, "console"), away)
          if (taken === undefined) return yield* new ActRefused({ message: "somebody else has taken the charge up meanwhile" })
          return yield* charged(pipeline.resume(taken))
        }),
        reconcile: Effect.fn("ProcessorDesk.reconcile")(function*({ billingPeriod: asked, dryRun, sinceMs }, { actor, reason }) {
          // A period that is none has no rows and no objects, and would be found in order.
          const period = parsePeriod(asked, { labels })
          if (Result.isFailure(period)) return yield* new ActRefused({ message: period.failure.message })
          const billingPeriod = period.success
          const startedAtMs = yield* Clock.currentTimeMillis
          const fresh: Reconciliation = {
            state: "running", billingPeriod, sinceMs, dryRun, actor, reason, startedAtMs, differences: [], found: 0, report: null, detail: null
          }
          const isFree = yield* Ref.modify(last, (now) => now?.state === "running" ? [false, now] : [true, fresh])
          if (!isFree) return yield* new ActRefused({ message: "a comparison is under way" })
          const update = (change: (now: Reconciliation) => Partial<Reconciliation>) =>
            Ref.update(last, (now) => now === null ? now : { ...now, ...change(now) })
          const onDifference = (difference: Difference) =>
            update(({ differences, found }) => ({
              found: found + 1,
              differences: differences.length < differencesMax ? [...differences, difference] : differences
            }))
          yield* reconciler.reconcile({ billingPeriod, sinceMs, dryRun }, onDifference).pipe(
            Effect.onExit((exit) =>
              Exit.isSuccess(exit)
                ? update(() => ({ state: "done", report: exit.value }))
                : update(() => ({ state: "failed", detail: Cause.hasInterruptsOnly(exit.cause) ? "it was stopped" : Cause.pretty(exit.cause).split("\n")[0] ?? null }))),
            Effect.exit,
            Effect.forkIn(scope)
          )
        }),
        comparison: Ref.get(last)
      })
    })
  )
}
