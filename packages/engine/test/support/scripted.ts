/** A pipeline over stores and a processor that answer as they are told, and say what they were asked. */
import {
  ChargeError, type ChargeErrorReason, ChargeGateway, type ChargeOutcome, ChargePause, ChargeRequest, type ClaimedCharge, Declined, FaultPoint, type GatewayPayment, Ledger, LedgerError,
  type LedgerErrorReason, type PipelineError, SpendCap, SpendCapError, type SpendCapErrorReason, Succeeded
} from "@purser/core"
import { Context, Effect, Layer, Logger, Metric, References, Result, Schema } from "effect"
import { dunningWaits } from "../../src/DunningPolicy.ts"
import { ChargePipeline } from "../../src/ChargePipeline.ts"
import { PipelineOptions, type PipelineSettings, retryPolicy } from "../../src/PipelineOptions.ts"

const bare = { namespace: "zmq-billing", customerId: "acme", billingPeriod: "2026-07", amountMinor: 1999, currency: "usd", stripeCustomerId: "cus_1", allowFuture: true }
export const requestWith = (more: object = { paymentMethod: "pm_1" }) => Schema.decodeUnknownSync(ChargeRequest)({ ...bare, ...more })
export const request = requestWith()
export const { chargeKey } = request
export const charge = (more: Partial<ClaimedCharge> = {}): ClaimedCharge => ({
  lease: { chargeKey, worker: "w", epoch: 1 }, leaseLeftMs: 1000, request, state: "claimed", resumed: false, generation: 1, attempt: 1, paymentIntentId: null,
  paymentMethod: "pm_1", chosenMethod: null, declinedChargeId: null, sinceFirstClaimMs: 0, firstClaimedAtMs: 1_000_000, ...more
})
/** One that an earlier holder has left with an object. */
export const attached = (more: Partial<ClaimedCharge> = {}) => charge({ state: "attached", resumed: true, paymentIntentId: "pi_1", ...more })
export const payment = (more: Partial<GatewayPayment> = {}): GatewayPayment => ({
  id: "pi_1", status: "unconfirmed", amountMinor: 1999, amountReceivedMinor: 0, currency: "usd", stripeCustomerId: "cus_1", chargeKey, generation: 1, chargeId: null, decline: null, ...more
})
export const paid = payment({ status: "succeeded", amountReceivedMinor: 1999, chargeId: "ch_1" })
export const declinedAs = (chargeId: string | null) => payment({ status: "declined", decline: { code: "card_declined", declineCode: null, detail: "no", chargeId } })
export const ledgerError = (reason: LedgerErrorReason) => new LedgerError({ reason, chargeKey })
export const chargeError = (reason: ChargeErrorReason) => new ChargeError({ reason, chargeKey, requestId: null })
export const capError = (reason: SpendCapErrorReason) => new SpendCapError({ reason, chargeKey })

const common = { chargeKey, alreadySettled: false }
export const succeeded = (chargeId: string | null = "ch_1") => new Succeeded({ ...common, paymentIntentId: "pi_1", chargeId, amountReceivedMinor: 1999 })
export const declined = new Declined({ ...common, paymentIntentId: "pi_1", code: "card_declined", declineCode: null, adviceCode: null, declinedChargeId: "ch_no", detail: "no" })

/** What differs from a charge that is paid at once. */
export interface Script {
  readonly ledger?: Partial<Ledger["Service"]> | undefined
  readonly cap?: Partial<SpendCap["Service"]> | undefined
  readonly gateway?: Partial<ChargeGateway["Service"]> | undefined
  readonly settings?: Partial<PipelineSettings>
  readonly pause?: ChargePause["Service"]
  /** Somebody looks at the places that a charge passes. */
  readonly watched?: boolean
}

const word = (part: unknown): string =>
  typeof part === "object" && part !== null
    ? "outcome" in part ? `${(part.outcome as ChargeOutcome)._tag}${"nextAttemptAfterMs" in part ? ` next ${String(part.nextAttemptAfterMs)}` : ""}` : Object.values(part).map(word).join(" ")
    : String(part)

/** Answers one after the other, the last for ever. */
export const inOrder = <A>(...answers: readonly [A, ...Array<A>]) => {
  let next = 0
  return () => answers[Math.min(next++, answers.length - 1)]!
}

/** The pipeline, what it asked in which order (places in brackets), and what it logged. */
export const scripted = ({ cap = {}, gateway = {}, ledger = {}, pause, settings = {}, watched = false }: Script) => {
  const asked: Array<string> = []
  const lines: Array<string> = []
  const told = <Args extends ReadonlyArray<unknown>, A, E>(name: string, shown: (...args: NoInfer<Args>) => ReadonlyArray<unknown>, answer: (...args: Args) => Effect.Effect<A, E>) => (...args: Args): Effect.Effect<A, E> =>
    Effect.suspend(() => {
      asked.push([name, ...shown(...args).map(word)].join(" ").trim())
      return answer(...args)
    })
  const stores = Layer.mergeAll(
    Layer.effect(Ledger, Effect.map(Ledger, (memory) => {
      const all: Ledger["Service"] = {
        ...memory,
        claim: () => Effect.succeed({ _tag: "Claimed", charge: charge() }),
        attach: () => Effect.succeed({ _tag: "Attached" }),
        settle: ({ outcome }) => Effect.succeed({ _tag: "Settled", outcome }),
        extend: () => Effect.succeed(true),
        handBack: () => Effect.succeed(true),
        markReleased: () => Effect.void,
        renew: () => Effect.succeed(true),
        quarantine: () => Effect.void,
        find: () => Effect.succeed(undefined),
        releaseDue: () => Effect.succeed([]),
        ...ledger
      }
      return Ledger.of({
        ...all,
        claim: told("claim", (_, worker, extras?) => [worker, extras], all.claim),
        attach: told("attach", ({ generation, paymentIntentId, paymentMethod }) => [generation, paymentIntentId, paymentMethod], all.attach),
        settle: told("settle", (input) => [input.attempt, input.paymentIntentId, input], all.settle),
        extend: told("extend", () => [], all.extend),
        handBack: told("hand back", (_, retryAfterMs, detail) => [retryAfterMs, detail], all.handBack),
        markReleased: told("mark released", (_, attempt) => [attempt], all.markReleased),
        renew: told("renew", ({ generation, paymentIntentId }) => [generation, paymentIntentId], all.renew),
        quarantine: told("quarantine", (_, detail) => [detail], all.quarantine),
        find: told("find row", () => [], all.find)
      })
    })).pipe(Layer.provide(Ledger.layerMemory)),
    Layer.effect(SpendCap, Effect.map(SpendCap, (memory) => {
      const all: SpendCap["Service"] = { ...memory, store: {}, reserve: () => Effect.void, release: () => Effect.void, reserveByForce: () => Effect.succeed(0n), ...cap }
      return SpendCap.of({
        ...all,
        reserve: told("reserve", ({ amountMinor, attempt, billingPeriod, currency, namespace }) => [namespace, billingPeriod, currency, attempt, amountMinor], all.reserve),
        release: told("release", (_, attempt) => [attempt], all.release),
        reserveByForce: told("reserve by force", ({ amountMinor, attempt }) => [attempt, amountMinor], all.reserveByForce)
      })
    })).pipe(Layer.provide(SpendCap.layerMemory))
  )
  const all: ChargeGateway["Service"] = {
    name: "scripted",
    create: () => Effect.succeed(payment()),
    find: () => Effect.succeed(undefined),
    retrieve: () => Effect.succeed(payment()),
    defaultPaymentMethod: () => Effect.succeed("pm_default"),
    confirm: () => Effect.succeed(paid),
    cancel: (_, id) => Effect.succeed(payment({ id, status: "canceled" })),
    ...gateway
  }
  const processor = Layer.succeed(ChargeGateway, ChargeGateway.of({
    ...all,
    create: told("create", ({ attempt, generation }, suffix) => [generation, attempt, suffix], all.create),
    find: told("find", () => [], all.find),
    retrieve: told("look", (_, id) => [id], all.retrieve),
    defaultPaymentMethod: told("default method", () => [], all.defaultPaymentMethod),
    confirm: told("confirm", (_, { attempt, id, keySuffix, paymentMethod }) => [id, attempt, paymentMethod, keySuffix], all.confirm),
    cancel: told("cancel", (_, id) => [id], all.cancel),
    ...(all.prepare === undefined ? {} : { prepare: told("prepare", (_, id, suffix) => [id, suffix], all.prepare) })
  }))
  const logger = Logger.make(({ fiber, logLevel, message }) => {
    const { chargeKey: of } = fiber.getRef(References.CurrentLogAnnotations)
    lines.push(`${of === chargeKey ? "" : "unnamed "}${logLevel} ${String(message)}`)
  })
  const layer = ChargePipeline.layer.pipe(
    Layer.provide(Layer.mergeAll(
      stores, processor,
      pause === undefined ? Layer.empty : Layer.succeed(ChargePause, pause),
      PipelineOptions.layer({
        worker: "w", retry: retryPolicy({ attemptsMax: 3, backoffMs: 0, backoffMaxMs: 0 }), handBackMs: 7000, pollMs: 60_000, lookUpAfterMs: 5000, restorePointMs: undefined,
        dunning: dunningWaits(["1 hour"]), outageAfter: 1000, outageProbeMs: 1000, ...settings
      }),
      watched ? Layer.succeed(FaultPoint, (place) => Effect.sync(() => void asked.push(`(${place})`))) : Layer.empty
    )),
    Layer.provideMerge(Layer.mergeAll(Logger.layer([logger]), Layer.succeedContext(Context.make(Metric.MetricRegistry, new Map()))))
  )
  return { asked, layer, lines }
}

/** The outcome's kind and words, or the failure's. */
export const wordsOf = (end: Result.Result<ChargeOutcome, PipelineError>): string =>
  Result.isFailure(end) ? `${end.failure.reason._tag}: ${end.failure.reason.message}`
    : [end.success._tag, ..."code" in end.success ? [end.success.code] : [], ..."detail" in end.success ? [end.success.detail] : []].join(" ")

/** What came of it, and all that was asked on the way. */
export const ran = (script: Script, run: (pipeline: ChargePipeline["Service"]) => Effect.Effect<ChargeOutcome, PipelineError>) => {
  const { asked, layer, lines } = scripted(script)
  return Effect.gen(function*() {
    const end = wordsOf(yield* Effect.result(run(yield* ChargePipeline)))
    return { all: [end, ...asked], asked, end, lines }
  }).pipe(Effect.provide(layer))
}
