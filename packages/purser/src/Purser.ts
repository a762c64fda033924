/**
 * Purser with batteries: the engine, the stores and Stripe from the configuration, as one layer for Effect programs and
 * as one object for programs that do not use Effect.
 */
import type { CapReport, ChargeOutcome, RefundOutcome } from "@purser/core"
import { ChargePipeline, DunningHooks, type GivenUp, Refunds, Runs, WebhookHttp } from "@purser/engine"
import { StripeGateway, StripeRefunds } from "@purser/stripe"
import { Config, ConfigProvider, Context, Effect, Layer, ManagedRuntime, Option, References, Stream } from "effect"
import {
  type ChargeStatus, type DunningStarted, type DunningStatus, makeCalls, type PurserStatus, type RebillResult, type RetryResult
} from "./PurserCalls.ts"
import { PurserEngine } from "./PurserEngine.ts"
import { type CapFailure, type ChargeFailure, type GiveBackFailure, isPurserError, type PurserResult, type RunFailure, type StatusFailure, type StoreFailure } from "./PurserError.ts"
import type { ActInput, CapInput, ChargeInput, ChargeName, DunningInput, NewCardInput, RebillRequest, RefundInput, RetryInput } from "./PurserInput.ts"
import { isOver, type PurserRun, type RunInput, startRun, statusOf } from "./PurserRun.ts"
import { PurserWebhooks } from "./PurserWebhooks.ts"
import { Stores } from "./Stores.ts"
import { Telemetry } from "./Telemetry.ts"

/** The pipeline and refunds on the configured database and Stripe account. */
const layerConfig = Layer.mergeAll(ChargePipeline.layer, Refunds.layer).pipe(
  Layer.provideMerge(Layer.mergeAll(Stores.layerConfig, StripeGateway.layerConfig, StripeRefunds.layer))
)

/** What can be asked of a running Purser. Each promise rejects with the union that {@link PurserFailures} names, and with nothing else of Purser's. */
export interface PurserMethods {
  /** Charges exactly once; the same identity again resolves with the recorded outcome. A decline is an outcome. */
  readonly charge: (input: ChargeInput) => Promise<ChargeOutcome>
  /** One charge as the ledger has it. */
  readonly find: (input: ChargeName) => Promise<ChargeStatus | undefined>
  /** Asks once more for a charge that ended unpaid, as its next attempt. */
  readonly retry: (input: RetryInput) => Promise<RetryResult>
  /** Opens the cap of a period and currency; nothing is charged without one. The same figures again change nothing. */
  readonly openCap: (input: CapInput) => Promise<CapReport>
  /** Gives money back, once per refund id; the same id again resolves with the recorded outcome. */
  readonly refund: (input: RefundInput) => Promise<RefundOutcome>
  /** Opens the next revision of a charge that was given back, and charges it; the same call again goes on with it. */
  readonly rebill: (input: RebillRequest) => Promise<RebillResult>
  /** Stops all charging of the database, in every process; work waits. False when it was paused before. */
  readonly pause: (input: ActInput) => Promise<boolean>
  /** Lets charging go on. False when nobody had paused it. */
  readonly resume: (input: ActInput) => Promise<boolean>
  /** Counts and sums by period and state, caps, and pauses. */
  readonly status: (input?: { readonly billingPeriod?: string }) => Promise<PurserStatus>
  /** Opens a dunning case for a declined charge. With `PURSER_DUNNING=on` each decline has one by itself. */
  readonly startDunning: (input: DunningInput) => Promise<DunningStarted>
  /** Ends the open case of a charge: it is asked for no more. False when there is none. */
  readonly cancelDunning: (input: DunningInput) => Promise<boolean>
  /** A customer has a new card: their open cases try it at once. Answers how many. */
  readonly newCard: (input: NewCardInput) => Promise<number>
  /** Dunning cases, the newest first; those that are open, or all. */
  readonly dunningCases: (input?: { readonly all?: boolean; readonly limit?: number }) => Promise<ReadonlyArray<DunningStatus>>
  /** Plans the rows, and starts a run over them in this process; the same name again answers the run that has it. */
  readonly run: (input: RunInput) => Promise<PurserRun>
  /** The run that has this name or id. */
  readonly getRun: (name: string) => Promise<PurserRun>
}

/** What each call may fail with: unions of classes that TypeScript narrows by `_tag`, and by `reason._tag`. */
export interface PurserFailures {
  readonly charge: ChargeFailure
  readonly find: StoreFailure
  readonly retry: ChargeFailure
  readonly openCap: CapFailure
  readonly refund: GiveBackFailure
  readonly rebill: ChargeFailure
  readonly pause: StoreFailure
  readonly resume: StoreFailure
  readonly status: StatusFailure
  readonly startDunning: StoreFailure
  readonly cancelDunning: StoreFailure
  readonly newCard: StoreFailure
  readonly dunningCases: StoreFailure
  readonly run: RunFailure
  readonly getRun: RunFailure
}

/** The same calls, resolving with their failure as a value: `{ _tag: "Success", value }` or `{ _tag: "Failure", error }`. */
export type PurserResults = {
  readonly [K in keyof PurserMethods]: (
    ...input: Parameters<PurserMethods[K]>
  ) => Promise<PurserResult<Awaited<ReturnType<PurserMethods[K]>>, PurserFailures[K]>>
}

/** A running Purser for programs without Effect. */
export interface PurserHandle extends PurserMethods {
  /** Every call once more, with a typed failure as a value instead of a rejection. */
  readonly results: PurserResults
  /** Answers a call of Stripe's webhooks, to be mounted in any server; rejects unless `PURSER_WEBHOOK_SECRET` is set. */
  readonly webhooks: (request: Request) => Promise<Response>
  /** Finishes what is in work and closes the database. Runs and dunning go on when Purser is started again. */
  readonly close: () => Promise<void>
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

/** What a program does by itself. */
export interface PurserHooks {
  /** The final action of dunning: done at least once for each case, whose id tells a repeat. A rejection is tried again later. */
  readonly dunningGivenUp?: (ended: GivenUp) => Promise<void> | void
}

/** Webhooks where a secret is configured. */
const withWebhooks = Layer.unwrap(Effect.map(Config.option(Config.Redacted("PURSER_WEBHOOK_SECRET")), (secret) =>
  Option.isSome(secret) ? PurserWebhooks.layerServing : Layer.empty)).pipe(Layer.provideMerge(layerConfig))

const webHandler = Effect.flatMap(Effect.serviceOption(WebhookHttp), (http): Effect.Effect<PurserHandle["webhooks"]> =>
  Option.isSome(http)
    ? Effect.provideService(PurserWebhooks.webHandler, WebhookHttp, http.value)
    : Effect.succeed(() => Promise.reject(new Error("PURSER_WEBHOOK_SECRET is not set"))))

/** A library says little: warnings, unless it is told otherwise. */
const logLevel = Layer.unwrap(Effect.map(Config.LogLevel("PURSER_LOG_LEVEL").pipe(Config.withDefault("Warn" as const)), (level) =>
  Layer.succeed(References.MinimumLogLevel, level)))

/** Traces, metrics and logs to the collector of the configuration. Whoever wants to be scraped has a server of their own. */
const telemetry = Layer.unwrap(Effect.map(Telemetry.settings, (settings) => Telemetry.layer({ ...settings, metrics: undefined }, { component: "embedded" })))

const hooksLayer = ({ dunningGivenUp }: PurserHooks): Layer.Layer<never> =>
  dunningGivenUp === undefined ? Layer.empty : DunningHooks.layer({
    givenUp: (ended) => Effect.tryPromise({ try: async () => dunningGivenUp(ended), catch: (cause) => ({ message: String(cause) }) })
  })

const settings = Config.all({
  labels: Config.Literals(["calendar", "opaque"], "PURSER_PERIOD_LABELS").pipe(Config.withDefault("calendar" as const)),
  dunning: Config.Literals(["on", "off"], "PURSER_DUNNING").pipe(Config.withDefault("off" as const))
})

/** The calls as Effects, each with the value and the failures that its promise is said to have. */
type PurserTable = {
  readonly [K in keyof PurserMethods]: (
    ...input: Parameters<PurserMethods[K]>
  ) => Effect.Effect<Awaited<ReturnType<PurserMethods[K]>>, PurserFailures[K]>
}

/** Every call of the table, ended by `view`. */
const throughout = <V extends object>(table: PurserTable, view: (effect: Effect.Effect<unknown, unknown>) => Promise<unknown>): V =>
  Object.fromEntries(Object.entries(table).map(([name, call]) =>
    [name, (...input: ReadonlyArray<unknown>) => view((call as (...input: ReadonlyArray<unknown>) => Effect.Effect<unknown, unknown>)(...input))])) as V

/** Starts Purser with these configuration keys (`PURSER_DATABASE_URL`, `PURSER_STRIPE_KEY`, …) on top of the environment's. */
const make = async (config: Readonly<Record<string, string>> = {}, hooks: PurserHooks = {}): Promise<PurserHandle> => {
  const provider = ConfigProvider.orElse(ConfigProvider.fromUnknown(config), ConfigProvider.fromEnv())
  const base = withWebhooks.pipe(Layer.provideMerge(telemetry), Layer.provideMerge(Layer.mergeAll(logLevel, hooksLayer(hooks))), Layer.provideMerge(ConfigProvider.layer(provider)))
  const runtime = ManagedRuntime.make(base)
  const { dunning, labels } = await runtime.runPromise(settings)
  const calls = await runtime.runPromise(makeCalls(labels))
  // Only who bills by runs or follows declines up needs the engine, which takes a moment to start.
  const engine = ManagedRuntime.make(PurserEngine.layer.pipe(Layer.provideMerge(base)), { memoMap: runtime.memoMap })
  const close = () => engine.dispose().then(() => runtime.dispose())
  if (dunning === "on") await engine.runPromise(Effect.void).catch((error: unknown) => close().then(() => Promise.reject(error)))

  const handleOf = (runId: string, name: string, isNew: boolean): PurserRun => {
    const onRuns = <A, E>(use: (runs: Runs["Service"]) => Effect.Effect<A, E>) => engine.runPromise(Effect.flatMap(Runs, use))
    const status = () => onRuns((runs) => Effect.map(runs.view(runId), statusOf))
    const progress = Stream.unwrap(Effect.map(Runs, (runs) => Stream.map(runs.watch(runId, "500 millis"), statusOf)))
    return {
      runId,
      name,
      isNew,
      status,
      done: () => engine.runPromise(Stream.runLast(Stream.filter(progress, isOver))).then((last) => Option.isSome(last) ? last.value : status()),
      pause: (reason) => onRuns((runs) => runs.pause(runId, "program", reason)).then(status),
      resume: () => onRuns((runs) => runs.resume(runId, "program")).then(status),
      cancel: (reason) => onRuns((runs) => runs.cancel(runId, "program", reason)).then(status),
      async *[Symbol.asyncIterator]() {
        yield* Stream.toAsyncIterableWith(progress, await engine.context())
      }
    }
  }
  const engineContext = Effect.orDie(engine.contextEffect)
  const table: PurserTable = {
    ...calls,
    run: (input) =>
      Effect.flatMap(engineContext, (context) => Effect.provideContext(startRun(input, labels), context)).pipe(
        Effect.map(({ isNew, runId }) => handleOf(runId, input.name, isNew))
      ),
    getRun: (name) =>
      Effect.flatMap(engineContext, (context) => Context.get(context, Runs).view(name)).pipe(
        Effect.map(({ run }) => handleOf(run.runId, run.name, false))
      )
  }
  return {
    ...throughout<PurserMethods>(table, (effect) => runtime.runPromise(effect)),
    results: throughout<PurserResults>(table, (effect) =>
      runtime.runPromise(Effect.match(effect, {
        onFailure: (error) => ({ _tag: "Failure", error }),
        onSuccess: (value) => ({ _tag: "Success", value })
      }))),
    webhooks: await runtime.runPromise(webHandler),
    close,
    [Symbol.asyncDispose]: close
  }
}

/** Purser as a layer, and as an object. */
export const Purser = {
  layerConfig,
  make,
  /** Whether a rejection is one of Purser's errors. */
  isError: isPurserError
}
