/**
 * Purser with batteries: the engine, the stores and Stripe from the configuration, as one layer for Effect programs and
 * as one object for programs that do not use Effect.
 */
import { type ChargeGateway, type ChargeOutcome, type Ledger, type RefundOutcome, RunRegistry, type SpendCap } from "@purser/core"
import { ChargePipeline, DunningHooks, type GivenUp, Refunds, Runs, stagedDefinition, Sweeper, WebhookHttp } from "@purser/engine"
import { StripeGateway, StripeRefunds } from "@purser/stripe"
import { Config, ConfigProvider, Context, Deferred, Duration, Effect, Layer, ManagedRuntime, Option, References, Stream } from "effect"
import { type InWork, makeInWork } from "./internal/inWork.ts"
import {
  type CapStatus, type ChargeStatus, type DunningStarted, type DunningStatus, makeCalls, type PurserStatus, type RebillResult, type RetryResult
} from "./PurserCalls.ts"
import { engineStartFailure } from "./EngineUnavailable.ts"
import { PurserEngine } from "./PurserEngine.ts"
import {
  type CapFailure, type ChargeFailure, type GiveBackFailure, InvalidInput, isPurserError, PurserClosed, type PurserResult, type RunFailure, type StatusFailure, type StoreFailure
} from "./PurserError.ts"
import {
  type ActInput, type CapInput, type ChargeInput, type ChargeName, type DunningInput, type NewCardInput, readTexts, type RebillRequest, type RefundInput, type RetryInput
} from "./PurserInput.ts"
import { extendRun, isOver, type PurserRun, type RunInput, startRun, statusOf } from "./PurserRun.ts"
import { PurserWebhooks } from "./PurserWebhooks.ts"
import { settingProblem } from "./SettingProblem.ts"
import { Stores } from "./Stores.ts"
import { Telemetry } from "./Telemetry.ts"

const layerOn = (pipeline: Layer.Layer<ChargePipeline, Config.ConfigError, Ledger | SpendCap | ChargeGateway>) =>
  Layer.mergeAll(pipeline, Refunds.layer).pipe(
    Layer.provideMerge(Layer.mergeAll(Stores.layerConfig, StripeGateway.layerConfig, StripeRefunds.layer))
  )

/** The pipeline and refunds on the configured database and Stripe account. */
const layerConfig = layerOn(ChargePipeline.layer)

/** A charge that was begun comes to its end, though the run, the sweep or the caller that began it is stopped. */
const keptPipeline = ({ keep }: InWork) =>
  Layer.effect(ChargePipeline, Effect.map(ChargePipeline, (pipeline) => {
    const stopped = <A, E>(effect: Effect.Effect<A, E>) => Effect.catchIf(keep(effect), (error) => error instanceof PurserClosed, () => Effect.interrupt)
    return ChargePipeline.of({
      ...pipeline,
      charge: (request) => stopped(pipeline.charge(request)),
      resume: (charge, taken) => stopped(pipeline.resume(charge, taken))
    })
  })).pipe(Layer.provide(ChargePipeline.layer))

/** What can be asked of a running Purser. Each promise rejects with the union that {@link PurserFailures} names, and with nothing else of Purser's. */
export interface PurserMethods {
  /** Charges exactly once; the same identity again resolves with the recorded outcome. A decline is an outcome. */
  readonly charge: (input: ChargeInput) => Promise<ChargeOutcome>
  /** One charge as the ledger has it. */
  readonly find: (input: ChargeName) => Promise<ChargeStatus | undefined>
  /** Asks once more for a charge that ended unpaid, as its next attempt. */
  readonly retry: (input: RetryInput) => Promise<RetryResult>
  /** Opens the cap of a period and currency; nothing is charged without one. The same figures again change nothing. */
  readonly openCap: (input: CapInput) => Promise<CapStatus>
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
  /**
   * Plans the rows, and starts a run over them in this process; the same name again answers the run that has it. Rows that it does
   * not have are not passed over then: they are refused, and `extend` adds them.
   */
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
  /**
   * Takes nothing new (`PurserClosed`), finishes the calls and charges that are in work for up to `PURSER_DRAIN_TIMEOUT`, and closes
   * the database. Whoever follows a run is let go. Runs, dunning and what was cut short go on when Purser is started again.
   */
  readonly close: () => Promise<void>
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

/** What a program does by itself. */
export interface PurserHooks {
  /** The final action of dunning: done at least once for each case, whose id tells a repeat. A rejection is tried again later. */
  readonly dunningGivenUp?: (ended: GivenUp) => Promise<void> | void
}

/** Webhooks where a secret is configured. */
const webhooks = Layer.unwrap(Effect.map(Config.option(Config.Redacted("PURSER_WEBHOOK_SECRET")), (secret) =>
  Option.isSome(secret) ? PurserWebhooks.layerServing : Layer.empty))

const webHandler = Effect.flatMap(Effect.serviceOption(WebhookHttp), (http) =>
  Option.isSome(http) ? Effect.asSome(Effect.provideService(PurserWebhooks.webHandler, WebhookHttp, http.value)) : Effect.succeedNone)

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
  dunning: Config.Literals(["on", "off"], "PURSER_DUNNING").pipe(Config.withDefault("off" as const)),
  runs: Config.Literals(["on", "off"], "PURSER_HOST_RUNS").pipe(Config.withDefault("on" as const)),
  sweep: Config.Literals(["on", "off"], "PURSER_HOST_SWEEP").pipe(Config.withDefault("on" as const)),
  drain: Config.Duration("PURSER_DRAIN_TIMEOUT").pipe(Config.withDefault(Duration.seconds(10)))
})

/** Takes up what nobody holds any more, for instance since the host before this one was killed. */
const sweeping = Effect.scoped(Effect.flatMap(Layer.build(Sweeper.layerNoDeps), (context) => Context.get(context, Sweeper).run))

/** Whether a run of planned rows has been left by whoever had it in work. */
const hasUnfinishedRuns = Effect.gen(function*() {
  const runs = yield* (yield* RunRegistry).list({ states: ["waiting", "planned", "running", "canceling"], limit: 1000 })
  return runs.some(({ definition }) => definition === stagedDefinition)
})

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null && !Array.isArray(value)
const checkMade = (config: unknown, hooks: unknown): Effect.Effect<void, InvalidInput> => {
  if (!isObject(config)) return Effect.fail(new InvalidInput({ detail: "the configuration must be an object of PURSER_ keys" }))
  const wrong = Object.entries(config).find(([, value]) => typeof value !== "string")?.[0]
  if (wrong !== undefined) return Effect.fail(new InvalidInput({ detail: `${wrong} must be a text, as in the environment` }))
  if (!isObject(hooks)) return Effect.fail(new InvalidInput({ detail: "hooks must be an object" }))
  const hook = "dunningGivenUp" in hooks ? hooks.dunningGivenUp : undefined
  return hook === undefined || typeof hook === "function" ? Effect.void : Effect.fail(new InvalidInput({ detail: "dunningGivenUp must be a function" }))
}

/** The calls as Effects, each with the value and the failures that its promise is said to have. */
type PurserTable = {
  readonly [K in keyof PurserMethods]: (
    ...input: Parameters<PurserMethods[K]>
  ) => Effect.Effect<Awaited<ReturnType<PurserMethods[K]>>, PurserFailures[K]>
}

/** Every call of the table, ended by `view`. */
const throughout = <V extends object>(table: PurserTable, view: (effect: Effect.Effect<unknown, unknown>, name: string) => Promise<unknown>): V =>
  Object.fromEntries(Object.entries(table).map(([name, call]) =>
    [name, (...input: ReadonlyArray<unknown>) => view(Effect.suspend(() => (call as (...input: ReadonlyArray<unknown>) => Effect.Effect<unknown, unknown>)(...input)), name)])) as V

/** Starts Purser with these configuration keys (`PURSER_DATABASE_URL`, `PURSER_STRIPE_KEY`, …) on top of the environment's. */
const make = (config: Readonly<Record<string, string>> = {}, hooks: PurserHooks = {}): Promise<PurserHandle> =>
  start(config, hooks).catch((error: unknown) =>
    Promise.reject(error instanceof Config.ConfigError ? new InvalidInput({ detail: settingProblem(error) }) : error))

const start = async (config: Readonly<Record<string, string>>, hooks: PurserHooks): Promise<PurserHandle> => {
  await Effect.runPromise(checkMade(config, hooks))
  const provider = ConfigProvider.orElse(ConfigProvider.fromUnknown(config), ConfigProvider.fromEnv())
  const [charges, calls, onEngine] = [makeInWork(), makeInWork(), makeInWork()]
  const base = webhooks.pipe(
    Layer.provideMerge(layerOn(keptPipeline(charges))),
    Layer.provideMerge(telemetry),
    Layer.provideMerge(Layer.mergeAll(logLevel, hooksLayer(hooks))),
    Layer.provideMerge(ConfigProvider.layer(provider))
  )
  const runtime = ManagedRuntime.make(base)
  const { drain, dunning, labels, runs, sweep } = await runtime.runPromise(settings)
  const storeCalls = await runtime.runPromise(makeCalls(labels))
  // Only who bills by runs or follows declines up needs the engine, which takes a moment to start.
  const engineLayer = PurserEngine.layer.pipe(Layer.provideMerge(Layer.succeedContext(await runtime.context())))
  let engine: ManagedRuntime.ManagedRuntime<Layer.Success<typeof engineLayer>, Layer.Error<typeof engineLayer>> | undefined
  /** One that did not start is built anew by whoever needs it next. */
  const engineContext = Effect.suspend(() => {
    const mine = engine ??= ManagedRuntime.make(engineLayer)
    return Effect.mapError(mine.contextEffect, engineStartFailure).pipe(Effect.tapError(() => {
      if (engine === mine) engine = undefined
      return mine.disposeEffect
    }))
  })

  const closing = Deferred.makeUnsafe<never, PurserClosed>()
  let closed: Promise<void> | undefined
  const refused = new PurserClosed({ outcome: "not_charged" })
  /** Whoever follows a run: its rows may have been charged, and the next process goes on with it. */
  const letGo = new PurserClosed({ outcome: "unknown" })
  const finish = async (bound: Duration.Duration) => {
    Deferred.doneUnsafe(closing, Effect.fail(letGo))
    const drained = (work: InWork) => runtime.runPromise(work.drain(bound))
    // A run that is stopped sends nothing more; what it sent comes to its end.
    await Promise.all([drained(calls), drained(onEngine).then(() => engine?.dispose()).then(() => drained(charges))])
    await runtime.dispose()
  }
  const close = () => closed ??= finish(drain)

  const waits = <A, E>(work: InWork, effect: Effect.Effect<A, E>, late = refused): Effect.Effect<A, E | PurserClosed> =>
    Effect.suspend((): Effect.Effect<A, E | PurserClosed> => closed === undefined ? work.keep(effect) : Effect.fail(late))
  /** A runtime that is disposed runs nothing, also no refusal. */
  const promised = <A, E>(effect: Effect.Effect<A, E>): Promise<A> => closed === undefined ? runtime.runPromise(effect) : Effect.runPromise(effect)

  const isNeeded = dunning === "on" || (runs === "on" && (await runtime.runPromise(hasUnfinishedRuns)))
  if (isNeeded) await runtime.runPromise(engineContext).catch((error: unknown) => close().then(() => Promise.reject(error)))
  if (sweep === "on") runtime.runFork(Effect.raceFirst(sweeping, Effect.ignore(Deferred.await(closing))))

  const withEngine = <A, E>(effect: Effect.Effect<A, E, Layer.Success<typeof engineLayer>>) =>
    Effect.flatMap(engineContext, (context) => Effect.provideContext(effect, context))

  const handleOf = (runId: string, name: string, isNew: boolean): PurserRun => {
    const onRuns = <A, E>(use: (runs: Runs["Service"]) => Effect.Effect<A, E>) => waits(onEngine, withEngine(Effect.flatMap(Runs, use)))
    const status = onRuns((runs) => Effect.map(runs.view(runId), statusOf))
    const act = <A, E>(effect: Effect.Effect<A, E>) => promised(Effect.andThen(effect, status))
    const stopping = (how: "pause" | "cancel") => (reason: string) => act(Effect.andThen(readTexts({ reason }), onRuns((runs) => runs[how](runId, "program", reason))))
    const progress = Stream.unwrap(Effect.map(Runs, (runs) => Stream.map(runs.watch(runId, "500 millis"), statusOf))).pipe(
      Stream.interruptWhen(Deferred.await(closing))
    )
    const last = waits(onEngine, withEngine(Stream.runLast(Stream.filter(progress, isOver))), letGo)
    return {
      runId,
      name,
      isNew,
      status: () => promised(status),
      done: () => promised(Effect.flatMap(last, (over) => Option.isSome(over) ? Effect.succeed(over.value) : status)),
      pause: stopping("pause"),
      resume: () => act(onRuns((runs) => runs.resume(runId, "program"))),
      cancel: stopping("cancel"),
      extend: (rows) => act(waits(onEngine, withEngine(extendRun(runId, rows, labels)))),
      async *[Symbol.asyncIterator]() {
        if (closed !== undefined) throw letGo
        yield* Stream.toAsyncIterableWith(progress, await promised(engineContext))
      }
    }
  }
  const table: PurserTable = {
    ...storeCalls,
    run: (input) => Effect.map(withEngine(startRun(input, labels)), ({ isNew, runId }) => handleOf(runId, input.name, isNew)),
    getRun: (name) =>
      Effect.andThen(readTexts({ name }), withEngine(Effect.flatMap(Runs, (runs) => runs.view(name)))).pipe(
        Effect.map(({ run }) => handleOf(run.runId, run.name, false))
      )
  }
  const waiting = <A, E>(effect: Effect.Effect<A, E>, name: string) => waits(name in storeCalls ? calls : onEngine, effect)
  const handler = await runtime.runPromise(webHandler)
  const answer = (request: Request): Effect.Effect<Response, InvalidInput> => {
    if (Option.isNone(handler)) return Effect.fail(new InvalidInput({ detail: "PURSER_WEBHOOK_SECRET is not set" }))
    if (!(request instanceof Request)) return Effect.fail(new InvalidInput({ detail: "webhooks takes the web's Request" }))
    return Effect.promise(() => handler.value(request))
  }
  return {
    ...throughout<PurserMethods>(table, (effect, name) => promised(waiting(effect, name))),
    results: throughout<PurserResults>(table, (effect, name) =>
      promised(Effect.match(waiting(effect, name), {
        onFailure: (error) => ({ _tag: "Failure", error }),
        onSuccess: (value) => ({ _tag: "Success", value })
      }))),
    webhooks: (request) => promised(waits(calls, Effect.suspend(() => answer(request)))),
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
