/**
 * Stripe's SDK as a scoped service: one request per call, a deadline over the whole call, and an interruption that
 * aborts the request.
 *
 * It answers with what Stripe said, whatever the status; it judges nothing and repeats nothing.
 */
import { CallSink, type ChargeKey, Tracing } from "@purser/core"
import { Cause, type Config, Context, Effect, type Exit, Layer, LogLevel, Metric, References, Result } from "effect"
import type { Stripe } from "stripe"
import { makeHideKey, makeScrub } from "./internal/scrub.ts"
import { makeLimiter, type Turn } from "./internal/limiter.ts"
import { type CallEnd, makeSdk, type Prepared } from "./internal/sdk.ts"
import { CallTimeout, ConnectionFailed, NotSent, StripeCallError } from "./StripeCallError.ts"
import { checkSettings, stripeConfig, type StripeOptions } from "./StripeConfig.ts"
import type { StripeConfigError } from "./StripeConfigError.ts"
import { StripeMetrics } from "./StripeMetrics.ts"
import { StripeOrigin } from "./StripeOrigin.ts"

/** What Stripe answered. `json` is undefined when the body is not JSON. Header names are lower case. */
export interface StripeAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly json: unknown
  readonly requestId: string | null
  /** A stored answer: the same idempotency key will never give another. */
  readonly replayed: boolean
}

/** Whom a call is for. */
export interface CallOptions {
  /** The Stripe customer: of calls for one customer only one is under way at a time. */
  readonly customer?: string | undefined
  /** The connected account, in place of that of the settings. */
  readonly account?: string | undefined
  /** The charge, for the book of calls. */
  readonly chargeKey?: ChargeKey | undefined
}

const decodeJson = (text: string): unknown => Result.getOrUndefined(Result.try((): unknown => JSON.parse(text)))

const statusOf = (exit: Exit.Exit<StripeAnswer, StripeCallError>): string => {
  if (exit._tag === "Success") return String(exit.value.status)
  const failure = exit.cause.reasons.find(Cause.isFailReason)
  if (failure === undefined) return Cause.hasInterrupts(exit.cause) ? "interrupted" : "defect"
  const names = { CallTimeout: "timeout", ConnectionFailed: "connection_failed", NotSent: "not_sent" } as const
  return names[failure.error.reason._tag]
}

const requestIdOf = (exit: Exit.Exit<StripeAnswer, StripeCallError>): string | null =>
  exit._tag === "Success" ? exit.value.requestId : exit.cause.reasons.find(Cause.isFailReason)?.error.requestId ?? null

/** Stripe's API. Calls need nothing and fail with `StripeCallError` when there is no answer. */
export class StripeClient extends Context.Service<StripeClient, {
  /** One call of the SDK, which must ask for one request before it returns: `call("create", (stripe) => stripe.paymentIntents.create(…))`. */
  readonly call: (
    operation: string,
    use: (stripe: Stripe) => PromiseLike<unknown>,
    options?: CallOptions
  ) => Effect.Effect<StripeAnswer, StripeCallError>
  /** Removes keys and client secrets from a text that came from the other side, and shortens it. */
  readonly scrub: (text: string) => string
}>()("@purser/stripe/StripeClient") {
  /** A client with these settings; its connections close with the scope. */
  static readonly layer = (options: StripeOptions): Layer.Layer<StripeClient, StripeConfigError> =>
    Layer.effect(StripeClient, make(options))

  /** A client from the environment, see {@link stripeConfig}. */
  static readonly layerConfig: Layer.Layer<StripeClient, Config.ConfigError | StripeConfigError> = Layer.effect(
    StripeClient,
    Effect.gen(function*() {
      return yield* make(yield* stripeConfig)
    })
  )
}

const make = Effect.fnUntraced(function*(options: StripeOptions) {
  const settings = yield* checkSettings(options)
  // The SDK takes a tenth of a second to load, and undici half of one: only those who charge pay for them.
  const { default: Sdk } = yield* Effect.promise(() => import("stripe"))
  const open = (yield* StripeOrigin) ?? (yield* Effect.promise(() => import("./internal/exchange.ts"))).openOrigin
  const origin = yield* Effect.acquireRelease(
    Effect.sync(() => open(settings.url, settings.maxConnections)),
    (origin) => Effect.sync(origin.close)
  )
  const prepare = makeSdk(Sdk, origin, settings)
  const limiter = yield* makeLimiter({
    allPerSecond: settings.allPerSecond,
    endpointPerSecond: settings.endpointPerSecond,
    concurrency: settings.maxConnections
  })
  const scrub = makeScrub(settings.key)
  const hideKey = makeHideKey(settings.key)
  const tell = yield* CallSink

  const failure = (reason: StripeCallError["reason"], operation: string, requestId: string | null) =>
    Effect.fail(new StripeCallError({ reason, operation, requestId }))

  const answerOf = (operation: string, end: CallEnd): Effect.Effect<StripeAnswer, StripeCallError> => {
    const received = "answer" in end ? end.answer.headers : end.failure.headers
    // Whatever the other side repeats to us, and wherever: the key goes no further.
    const headers: Record<string, string> = {}
    for (const [name, value] of Object.entries(received)) headers[name] = hideKey(value)
    const requestId = headers["request-id"] ?? null
    if ("answer" in end) {
      const { body, status } = end.answer
      return Effect.succeed({ status, headers, json: decodeJson(hideKey(body)), requestId, replayed: headers["idempotent-replayed"] === "true" })
    }
    const { code, detail, status } = end.failure
    return failure(new ConnectionFailed({ code, status, detail: scrub(detail) }), operation, requestId)
  }

  const prepared = (operation: string, use: (stripe: Stripe) => PromiseLike<unknown>, account: string | undefined) =>
    Effect.callback<Prepared, StripeCallError>((resume) => {
      prepare(use, account, (ready) => resume(Effect.succeed(ready)), (detail) =>
        resume(failure(new NotSent({ detail: scrub(detail) }), operation, null)))
    })

  /** A fiber that sleeps beside the request is the deadline: `Effect.timeout` races two of them, at twice the price. */
  const send = (operation: string, ready: Prepared) =>
    Effect.withFiber<StripeAnswer, StripeCallError>((fiber) =>
      Effect.callback((resume) => {
        let ended = false
        const aborter = new AbortController()
        const deadline = Effect.runForkWith(fiber.context)(Effect.sleep(settings.timeoutMs))
        /** The first end counts; what is then still under way is stopped, and what it says is not heard. */
        const end = () => {
          if (ended) return false
          ended = true
          deadline.interruptUnsafe()
          return true
        }
        deadline.addObserver(() => {
          if (!end()) return
          aborter.abort()
          resume(failure(new CallTimeout({ timeoutMs: settings.timeoutMs }), operation, null))
        })
        ready.send(aborter.signal, (how) => {
          if (end()) resume(answerOf(operation, how))
        })
        return Effect.sync(() => {
          if (end()) aborter.abort()
        })
      }))

  /** A 429 is news for the limiter. */
  const heed = (turn: Turn, { headers }: StripeAnswer) => {
    const reason = headers["stripe-rate-limited-reason"] ?? "none"
    return Effect.andThen(Metric.update(StripeMetrics.rateLimited.of(reason), 1), limiter.slowDown(turn, reason))
  }

  const observed = (operation: string, chargeKey: ChargeKey | undefined, ready: Effect.Effect<StripeAnswer, StripeCallError>) =>
    Effect.clockWith((clock) => {
      const startMs = clock.currentTimeMillisUnsafe()
      return Effect.onExit(ready, (exit) =>
        Effect.withFiber((fiber) => {
          const atMs = clock.currentTimeMillisUnsafe()
          const elapsedMs = atMs - startMs
          const status = statusOf(exit)
          const requestId = requestIdOf(exit)
          const replayed = exit._tag === "Success" && exit.value.replayed
          StripeMetrics.requests.of(operation, status).updateUnsafe(1, fiber.context)
          StripeMetrics.requestSeconds.of(operation).updateUnsafe(elapsedMs / 1000, fiber.context)
          const traced = Tracing.annotate(() => ({ "stripe.status": status, "stripe.replayed": replayed, ...(requestId === null ? {} : { "stripe.request_id": requestId }) }))
          // A line with its annotations costs more than the rest, also where nobody keeps it.
          const seen = LogLevel.isGreaterThan(fiber.getRef(References.MinimumLogLevel), "Debug") ? traced : Effect.andThen(
            traced,
            Effect.logDebug("Stripe request").pipe(Effect.annotateLogs({ operation, status, requestId, replayed, elapsedMs }))
          )
          if (tell === undefined || chargeKey === undefined) return seen
          return Effect.andThen(seen, tell({ chargeKey, operation, status, requestId, replayed, elapsedMs, atMs }))
        }))
    })

  const call = (operation: string, use: (stripe: Stripe) => PromiseLike<unknown>, { account, chargeKey }: CallOptions) =>
    Effect.matchEffect(prepared(operation, use, account), {
      onFailure: (error) => observed(operation, chargeKey, Effect.fail(error)),
      onSuccess: (ready) => {
        const turn = { account: ready.account, endpoint: endpointOf(ready.method, ready.path) }
        return Effect.tap(limiter.inTurn(turn, observed(operation, chargeKey, send(operation, ready))), (answer) =>
          answer.status === 429 ? heed(turn, answer) : Effect.void)
      }
    })

  return StripeClient.of({
    scrub,
    call: (operation, use, options = {}) => {
      const one = Tracing.traced(`Stripe.${operation}`, call(operation, use, options), () => ({
        kind: "client",
        attributes: { "server.address": settings.url.host }
      }))
      return options.customer === undefined ? one : limiter.alone(`${options.account ?? ""} ${options.customer}`, one)
    }
  })
})

/** The endpoint as Stripe counts it: the path without the ids of its objects, which stand in its third place. */
const endpointOf = (method: string, path: string): string =>
  `${method} ${path.replace(/\?.*$/s, "").replace(/^((?:\/[^/]*){2}\/)(?!search(?:\/|$))[^/]*/, "$1:id")}`
