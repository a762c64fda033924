/**
 * Purser with batteries: the engine, the stores and Stripe from the configuration, as one layer for Effect programs and
 * as one object for programs that do not use Effect.
 */
import {
  AmountMinor, type CapReport, chargeKeyOf, type ChargeOutcome, ChargeRequest, Currency, defaultHeadroomPercent, defaultNamespace, firstRefundId,
  type InvalidPeriod, type LedgerError, parsePeriod, type PipelineError, type RebillAnswer, RefundLedger, type RefundOutcome, type RefundReason,
  RefundRequest, SpendCap, type SpendCapError
} from "@purser/core"
import { ChargePipeline, type RefundFailure, Refunds, WebhookHttp } from "@purser/engine"
import { StripeGateway, StripeRefunds } from "@purser/stripe"
import { Config, ConfigProvider, Effect, Layer, ManagedRuntime, Option, Schema } from "effect"
import { PurserWebhooks } from "./PurserWebhooks.ts"
import { Stores } from "./Stores.ts"
import { Telemetry } from "./Telemetry.ts"

/** The pipeline and refunds on the configured database and Stripe account. */
const layerConfig = Layer.mergeAll(ChargePipeline.layer, Refunds.layer).pipe(
  Layer.provideMerge(Layer.mergeAll(Stores.layerConfig, StripeGateway.layerConfig, StripeRefunds.layer))
)

/** What a plain program gives for one charge; amounts in minor units, any accepted spelling of the period. */
export interface ChargeInput {
  readonly customerId: string
  readonly billingPeriod: string
  readonly amountMinor: number
  readonly currency: string
  readonly stripeCustomerId: string
  readonly paymentMethod?: string
  readonly item?: string
  readonly namespace?: string
}

/** Which charge a plain program means; `revision` for one that was billed anew. */
export interface ChargeName {
  readonly customerId: string
  readonly billingPeriod: string
  readonly item?: string
  readonly namespace?: string
  readonly revision?: number
}

/** A refund. Without `amountMinor` all that is left goes back; without `refundId` it is refund `1` of the charge. */
export interface RefundInput extends ChargeName {
  readonly amountMinor?: number
  readonly refundId?: string
  /** What the processor is told. */
  readonly cause?: RefundReason
  /** Why, and who, for the record. */
  readonly reason: string
  readonly actor?: string
  /** Asks once more for a refund that the processor refused. */
  readonly again?: boolean
}

/** A billing anew; amounts in minor units of the charge's currency. */
export interface RebillRequest extends Omit<ChargeName, "revision"> {
  readonly amountMinor: number
  readonly stripeCustomerId?: string
  readonly paymentMethod?: string
  readonly unrefunded?: boolean
  readonly reason: string
  readonly actor?: string
}

/** What came of a billing anew: why no revision was opened, or the revision and the outcome of its charge. */
export type RebillResult =
  | Exclude<RebillAnswer, { readonly _tag: "Opened" } | { readonly _tag: "Present" }>
  | { readonly _tag: "Billed"; readonly revision: number; readonly revises: string; readonly outcome: ChargeOutcome }

/** What a plain program expects a period's charges to add up to; amounts in minor units. */
export interface CapInput {
  readonly billingPeriod: string
  readonly currency: string
  readonly expectedMinor: number | bigint
  /** Hundredths; 110 unless given. */
  readonly headroomPercent?: number
  readonly namespace?: string
}

/** A running Purser for programs without Effect. Each rejection is one of the typed errors of `@purser/core`. */
export interface PurserHandle {
  /** Charges exactly once; the same identity again resolves with the recorded outcome. */
  readonly charge: (input: ChargeInput) => Promise<ChargeOutcome>
  /** Opens the cap of a period and currency; nothing is charged without one. The same figures again change nothing. */
  readonly openCap: (input: CapInput) => Promise<CapReport>
  /** Gives money back, once per refund id; the same id again resolves with the recorded outcome. */
  readonly refund: (input: RefundInput) => Promise<RefundOutcome>
  /** Opens the next revision of a charge that was given back, and charges it; the same call again goes on with it. */
  readonly rebill: (input: RebillRequest) => Promise<RebillResult>
  /** Answers a call of Stripe's webhooks, to be mounted in any server; rejects unless `PURSER_WEBHOOK_SECRET` is set. */
  readonly webhooks: (request: Request) => Promise<Response>
  /** Finishes what is in work and closes the database. */
  readonly close: () => Promise<void>
}

const decodeRequest = Schema.decodeUnknownEffect(ChargeRequest)

const periodLabels = Config.Literals(["calendar", "opaque"], "PURSER_PERIOD_LABELS").pipe(Config.withDefault("calendar" as const))
const readPeriod = (text: string) => Effect.flatMap(periodLabels, (labels) => Effect.fromResult(parsePeriod(text, { labels })))
const decodeCurrency = Schema.decodeUnknownEffect(Currency)

/** Whoever writes plain JavaScript has no compiler: a field of another name would be left out, and that may move money. */
const onlyFields = <A extends object>(fields: Readonly<Record<keyof Required<A>, true>>) => {
  const struct = Schema.Struct(Object.fromEntries(Object.keys(fields).map((name) => [name, Schema.optionalKey(Schema.Unknown)])))
  const decode = Schema.decodeUnknownEffect(struct, { onExcessProperty: "error" })
  return (input: A): Effect.Effect<void, Schema.SchemaError> => Effect.asVoid(decode(input))
}
const nameFields = { customerId: true, billingPeriod: true, item: true, namespace: true } as const
const checkCharge = onlyFields<ChargeInput>({ ...nameFields, amountMinor: true, currency: true, stripeCustomerId: true, paymentMethod: true })
const checkCap = onlyFields<CapInput>({ billingPeriod: true, currency: true, expectedMinor: true, headroomPercent: true, namespace: true })
const checkRefund = onlyFields<RefundInput>({
  ...nameFields, revision: true, amountMinor: true, refundId: true, cause: true, reason: true, actor: true, again: true
})
const checkRebill = onlyFields<RebillRequest>({
  ...nameFields, amountMinor: true, stripeCustomerId: true, paymentMethod: true, unrefunded: true, reason: true, actor: true
})

const charge = Effect.fnUntraced(function*(
  input: ChargeInput
): Effect.fn.Return<ChargeOutcome, PipelineError | Schema.SchemaError | InvalidPeriod | Config.ConfigError, ChargePipeline> {
  yield* checkCharge(input)
  const pipeline = yield* ChargePipeline
  const period = yield* readPeriod(input.billingPeriod)
  const request = yield* decodeRequest({
    ...input,
    namespace: input.namespace ?? defaultNamespace,
    billingPeriod: period,
    currency: input.currency.toLowerCase()
  })
  return yield* pipeline.charge(request)
})

const openCap = Effect.fnUntraced(function*(
  input: CapInput
): Effect.fn.Return<CapReport, SpendCapError | Schema.SchemaError | InvalidPeriod | Config.ConfigError, SpendCap> {
  yield* checkCap(input)
  const cap = yield* SpendCap
  return yield* cap.open({
    namespace: input.namespace ?? defaultNamespace,
    billingPeriod: yield* readPeriod(input.billingPeriod),
    currency: yield* decodeCurrency(input.currency.toLowerCase()),
    expectedMinor: BigInt(input.expectedMinor),
    headroomPercent: input.headroomPercent ?? defaultHeadroomPercent
  })
})

const keyOf = Effect.fnUntraced(function*(input: ChargeName) {
  return chargeKeyOf({ ...input, namespace: input.namespace ?? defaultNamespace, billingPeriod: yield* readPeriod(input.billingPeriod) })
})

const decodeRefund = Schema.decodeUnknownEffect(RefundRequest)

const refund = Effect.fnUntraced(function*(
  input: RefundInput
): Effect.fn.Return<RefundOutcome, RefundFailure | Schema.SchemaError | InvalidPeriod | Config.ConfigError, Refunds> {
  yield* checkRefund(input)
  const refunds = yield* Refunds
  return yield* refunds.refund(yield* decodeRefund({
    chargeKey: yield* keyOf(input),
    refundId: input.refundId ?? firstRefundId,
    amountMinor: input.amountMinor ?? null,
    reason: input.cause ?? null,
    actor: input.actor ?? "program",
    note: input.reason,
    again: input.again === true
  }))
})

const decodeAmount = Schema.decodeUnknownEffect(AmountMinor)

const rebill = Effect.fnUntraced(function*(
  input: RebillRequest
): Effect.fn.Return<
  RebillResult,
  LedgerError | PipelineError | Schema.SchemaError | InvalidPeriod | Config.ConfigError,
  RefundLedger | ChargePipeline
> {
  yield* checkRebill(input)
  const { actor, amountMinor, paymentMethod, reason, stripeCustomerId, unrefunded, ...name } = input
  const book = yield* RefundLedger
  const pipeline = yield* ChargePipeline
  const answer = yield* book.rebill({
    chargeKey: yield* keyOf(name),
    amountMinor: yield* decodeAmount(amountMinor),
    actor: actor ?? "program",
    reason,
    unrefunded: unrefunded === true,
    ...(stripeCustomerId === undefined ? {} : { stripeCustomerId }),
    ...(paymentMethod === undefined ? {} : { paymentMethod })
  })
  if (answer._tag !== "Opened" && answer._tag !== "Present") return answer
  const outcome = yield* pipeline.charge(answer.request)
  return { _tag: "Billed", revision: answer.request.revision ?? 0, revises: answer.revises, outcome }
})

/** Webhooks where a secret is configured. */
const withWebhooks = Layer.unwrap(Effect.map(Config.option(Config.Redacted("PURSER_WEBHOOK_SECRET")), (secret) =>
  Option.isSome(secret) ? PurserWebhooks.layerServing : Layer.empty)).pipe(Layer.provideMerge(layerConfig))

const webHandler = Effect.flatMap(Effect.serviceOption(WebhookHttp), (http): Effect.Effect<PurserHandle["webhooks"]> =>
  Option.isSome(http)
    ? Effect.provideService(PurserWebhooks.webHandler, WebhookHttp, http.value)
    : Effect.succeed(() => Promise.reject(new Error("PURSER_WEBHOOK_SECRET is not set"))))

/** Traces, metrics and logs to the collector of the configuration. Whoever wants to be scraped has a server of their own. */
const telemetry = Layer.unwrap(Effect.map(Telemetry.settings, (settings) => Telemetry.layer({ ...settings, metrics: undefined }, { component: "embedded" })))

/** Purser as a layer, and as an object. */
export const Purser = {
  layerConfig,
  /** Starts Purser with these configuration keys (`PURSER_DATABASE_URL`, `PURSER_STRIPE_KEY`, …) on top of the environment's. */
  make: async (config: Readonly<Record<string, string>> = {}): Promise<PurserHandle> => {
    const provider = ConfigProvider.orElse(ConfigProvider.fromUnknown(config), ConfigProvider.fromEnv())
    const runtime = ManagedRuntime.make(withWebhooks.pipe(Layer.provideMerge(telemetry), Layer.provideMerge(ConfigProvider.layer(provider))))
    await runtime.runPromise(Effect.void)
    return {
      charge: (input) => runtime.runPromise(charge(input)),
      openCap: (input) => runtime.runPromise(openCap(input)),
      refund: (input) => runtime.runPromise(refund(input)),
      rebill: (input) => runtime.runPromise(rebill(input)),
      webhooks: await runtime.runPromise(webHandler),
      close: () => runtime.dispose()
    }
  }
}
