/**
 * Stripe's SDK as a scoped service: one request per call, a deadline over the whole call, and an interruption that
 * aborts the request.
 *
 * It answers with what Stripe said, whatever the status; it judges nothing and repeats nothing.
 */
import { CallSink, type ChargeKey, Tracing } from "@purser/core"
import { Cause, Clock, type Config, Context, Effect, Exit, type Fiber, Layer, LogLevel, Metric, References, Result } from "effect"
import type { Stripe } from "stripe"
import { makeDeadlines } from "./internal/deadlines.ts"
import type { HttpAnswer, HttpEnd } from "./internal/exchange.ts"
import { makeLimiter, type Turn } from "./internal/limiter.ts"
import { makeHideKey, makeScrub } from "./internal/scrub.ts"
import { makeSdk, Prepared, type Refusal } from "./internal/sdk.ts"
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

type CallExit = Exit.Exit<StripeAnswer, StripeCallError>

const reasonWords = { CallTimeout: "timeout", ConnectionFailed: "connection_failed", NotSent: "not_sent" } as const

const statusOf = (exit: CallExit): string => {
  if (exit._tag === "Success") return String(exit.value.status)
  const failure = exit.cause.reasons.find(Cause.isFailReason)
  return failure === undefined ? "interrupted" : reasonWords[failure.error.reason._tag]
}

const requestIdOf = (exit: CallExit): string | null =>
  exit._tag === "Success" ? exit.value.requestId : exit.cause.reasons.find(Cause.isFailReason)?.error.requestId ?? null

/** An answer. Whatever the other side repeats to us, and wherever: the key goes no further. */
class Answer implements StripeAnswer {
  readonly status: number
  readonly json: unknown
  readonly requestId: string | null
  readonly replayed: boolean
  readonly #received: Readonly<Record<string, string>>
  readonly #hideKey: (text: string) => string

  constructor({ body, headers, status }: HttpAnswer, hideKey: (text: string) => string) {
    this.status = status
    this.json = decodeJson(hideKey(body))
    this.requestId = requestIdIn(headers, hideKey)
    this.replayed = headers["idempotent-replayed"] === "true"
    this.#received = headers
    this.#hideKey = hideKey
  }

  /** Of nearly all answers nobody looks at them. */
  get headers(): Readonly<Record<string, string>> {
    return Object.fromEntries(Object.entries(this.#received).map(([name, value]) => [name, this.#hideKey(value)]))
  }
}

const requestIdIn = (headers: Readonly<Record<string, string>>, hideKey: (text: string) => string): string | null => {
  const id = headers["request-id"]
  return id === undefined ? null : hideKey(id)
}

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
  const prepare = makeSdk(Sdk, settings)
  const deadlines = makeDeadlines(settings.timeoutMs)
  const limiter = yield* makeLimiter({
    allPerSecond: settings.allPerSecond,
    endpointPerSecond: settings.endpointPerSecond,
    concurrency: settings.maxConnections
  })
  const scrub = makeScrub(settings.key)
  const hideKey = makeHideKey(settings.key)
  const tell = yield* CallSink

  const failure = (reason: StripeCallError["reason"], operation: string, requestId: string | null): Exit.Exit<never, StripeCallError> =>
    Exit.fail(new StripeCallError({ reason, operation, requestId }))

  const exitOf = (operation: string, end: HttpEnd): CallExit => {
    if ("answer" in end) return Exit.succeed(new Answer(end.answer, hideKey))
    const { code, detail, headers, status } = end.failure
    return failure(new ConnectionFailed({ code, status, detail: scrub(detail) }), operation, requestIdIn(headers, hideKey))
  }

  /** A 429 is news for the limiter. */
  const heed = (turn: Turn, { headers }: StripeAnswer) => {
    const reason = headers["stripe-rate-limited-reason"] ?? "none"
    return Effect.andThen(Metric.update(StripeMetrics.rateLimited.of(reason), 1), limiter.slowDown(turn, reason))
  }

  /** Counts a call that is over, and tells it to those who listen; undefined where nobody does. */
  const told = (
    fiber: Fiber.Fiber<unknown, unknown>,
    operation: string,
    chargeKey: ChargeKey | undefined,
    exit: CallExit,
    elapsedMs: number,
    atMs: number
  ): Effect.Effect<void> | undefined => {
    const status = statusOf(exit)
    StripeMetrics.requests.of(operation, status).updateUnsafe(1, fiber.context)
    StripeMetrics.requestSeconds.of(operation).updateUnsafe(elapsedMs / 1000, fiber.context)
    // A line with its annotations costs more than the rest, also where nobody keeps it.
    const isLogged = !LogLevel.isGreaterThan(fiber.getRef(References.MinimumLogLevel), "Debug")
    const isTold = tell !== undefined && chargeKey !== undefined
    if (!isLogged && !isTold && Tracing.spanOf(fiber) === undefined) return undefined
    const requestId = requestIdOf(exit)
    const replayed = exit._tag === "Success" && exit.value.replayed
    const traced = Tracing.annotate(() => ({ "stripe.status": status, "stripe.replayed": replayed, ...(requestId === null ? {} : { "stripe.request_id": requestId }) }))
    const logged = isLogged
      ? Effect.andThen(traced, Effect.logDebug("Stripe request").pipe(Effect.annotateLogs({ operation, status, requestId, replayed, elapsedMs })))
      : traced
    return isTold ? Effect.andThen(logged, tell({ chargeKey, operation, status, requestId, replayed, elapsedMs, atMs })) : logged
  }

  /** The answer, or the failure, once those who listen have heard of it. */
  const exchange = (operation: string, chargeKey: ChargeKey | undefined, turn: Turn, ready: Prepared) =>
    Effect.withFiber<StripeAnswer, StripeCallError>((fiber) => {
      const clock = fiber.getRef(Clock.Clock)
      const startMs = clock.currentTimeMillisUnsafe()
      const heard = (exit: CallExit) => {
        const atMs = clock.currentTimeMillisUnsafe()
        return told(fiber, operation, chargeKey, exit, atMs - startMs, atMs)
      }
      return Effect.callback((resume) => {
        let isOver = false
        let stop: (() => void) | undefined
        /** The first end counts; what is then still under way is stopped, and what it says is not heard. */
        const end = () => {
          if (isOver) return false
          isOver = true
          deadlines.end(deadline)
          return true
        }
        const answer = (exit: CallExit) => {
          const hearing = heard(exit)
          const news = exit._tag === "Success" && exit.value.status === 429 ? heed(turn, exit.value) : undefined
          const before = hearing === undefined ? news : news === undefined ? hearing : Effect.andThen(hearing, news)
          resume(before === undefined ? exit : Effect.andThen(before, exit))
        }
        const deadline = deadlines.begin(fiber, () => {
          if (!end()) return
          stop?.()
          answer(failure(new CallTimeout({ timeoutMs: settings.timeoutMs }), operation, null))
        })
        stop = origin.send(ready, (how) => {
          if (end()) answer(exitOf(operation, how))
        })
        return Effect.suspend(() => {
          if (!end()) return Effect.void
          stop?.()
          return heard(Exit.interrupt()) ?? Effect.void
        })
      })
    })

  const notSent = (operation: string, chargeKey: ChargeKey | undefined, refusal: Refusal) =>
    Effect.flatMap(Effect.promise(() => refusal), (detail) =>
      Effect.withFiber<never, StripeCallError>((fiber) => {
        const exit = failure(new NotSent({ detail: scrub(detail) }), operation, null)
        const hearing = told(fiber, operation, chargeKey, exit, 0, fiber.getRef(Clock.Clock).currentTimeMillisUnsafe())
        return hearing === undefined ? exit : Effect.andThen(hearing, exit)
      }))

  const call = (operation: string, use: (stripe: Stripe) => PromiseLike<unknown>, { account, chargeKey }: CallOptions) =>
    Effect.suspend(() => {
      const ready = prepare(use, account)
      if (!(ready instanceof Prepared)) return notSent(operation, chargeKey, ready)
      const turn = { account: ready.account, endpoint: endpointOf(ready.method, ready.path) }
      return limiter.inTurn(turn, exchange(operation, chargeKey, turn, ready))
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
const endpointOf = (method: string, path: string): string => {
  const query = path.indexOf("?")
  const plain = query < 0 ? path : path.slice(0, query)
  const second = plain.indexOf("/", 1)
  const place = second < 0 ? 0 : plain.indexOf("/", second + 1) + 1
  if (place === 0) return `${method} ${plain}`
  const end = plain.indexOf("/", place)
  const rest = end < 0 ? "" : plain.slice(end)
  return plain.slice(place, end < 0 ? undefined : end) === "search" ? `${method} ${plain}` : `${method} ${plain.slice(0, place)}:id${rest}`
}
