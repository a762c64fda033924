/**
 * A stateful Stripe over real HTTP, as a scoped service.
 *
 * Defines how a program or a test starts the simulator, orders faults, moves its clock and reads its books. Refuses
 * to know Purser, and to keep anything beyond its scope: closing it ends every connection and forgets the account.
 */
import { Clock, Context, Duration, Effect, Layer, Random, Schema, type Scope } from "effect"
import type { BookEntry } from "./Books.ts"
import type { Fault } from "./Fault.ts"
import { defaultMaximumMinor } from "./internal/amounts.ts"
import { type ConnectionLost, type SimRequest, type SimResponse, type WebhookRequest } from "./InProcess.ts"
import { send, toFunction } from "./internal/send.ts"
import * as Server from "./internal/server.ts"
import { overHttp } from "./internal/post.ts"
import { Simulator } from "./internal/Simulator.ts"
import type { RequestEntry } from "./Journal.ts"
import { type RateLimitsOption, rateLimitsOf } from "./RateLimits.ts"
import type { RestrictedKey } from "./RestrictedKey.ts"
import type { WebhookDelivery, WebhookEndpoint, WebhookFault } from "./Webhook.ts"

/** How the simulator is set up. */
export interface StripeSimOptions {
  /** The port to listen on; 0 (the default) takes a free one. */
  readonly port?: number
  /** The address to listen on, 127.0.0.1 by default. */
  readonly host?: string
  /** Hold only what was created, instead of every `cus_…` and `pm_…` that is asked for. */
  readonly strict?: boolean
  /** False ignores idempotency keys, to prove that a client does not depend on them. */
  readonly idempotency?: boolean
  /** The largest amount in minor units, eight digits by default. */
  readonly maximumMinor?: number
  /** The `type` of the 409 for a key in use; both have been seen at Stripe. */
  readonly keyInUseType?: "idempotency_error" | "invalid_request_error"
  /** The rates to enforce: none by default, Stripe's for a sandbox or a live account, or others. */
  readonly rateLimits?: RateLimitsOption
  /** Restricted keys with what they may do; those that are not listed may do everything. */
  readonly restrictedKeys?: ReadonlyArray<RestrictedKey>
  /** Where events are sent from the start. */
  readonly webhooks?: ReadonlyArray<WebhookEndpoint>
  /** Takes webhooks in place of HTTP, and answers with a status; the program's own way to receive them. */
  readonly receiveWebhook?: (request: WebhookRequest) => Effect.Effect<number>
  /** How many events are remembered, 100 000 by default. */
  readonly eventsLimit?: number
  /** How long a change stays invisible to searches on the virtual clock, 1 minute by default. */
  readonly searchDelay?: Duration.Input
  /** How long a bank debit takes to settle on the virtual clock, 4 days by default. */
  readonly bankSettles?: Duration.Input
  /** How many requests the journal remembers, 100 000 by default. */
  readonly journalLimit?: number
}

/** The port is taken by another program. */
export class AddressInUse extends Schema.TaggedError<AddressInUse>("@purser/stripe-sim/StripeSimError/AddressInUse")(
  "AddressInUse",
  { host: Schema.String, port: Schema.Int }
) {
  override get message() {
    return `${this.host}:${this.port} is in use by another program`
  }
  get isRetryable() {
    return true
  }
}

/** The system did not let the server listen. */
export class ListenFailed extends Schema.TaggedError<ListenFailed>("@purser/stripe-sim/StripeSimError/ListenFailed")(
  "ListenFailed",
  { host: Schema.String, port: Schema.Int, cause: Schema.Defect() }
) {
  override get message() {
    return `The simulator could not listen on ${this.host}:${this.port}: ${String(this.cause)}`
  }
  get isRetryable() {
    return false
  }
}

/** Why the simulator did not start. */
export class StripeSimError extends Schema.TaggedError<StripeSimError>("@purser/stripe-sim/StripeSimError")(
  "StripeSimError",
  { reason: Schema.Union([AddressInUse, ListenFailed]) }
) {
  override get message() {
    return this.reason.message
  }
  get isRetryable() {
    return this.reason.isRetryable
  }
}

/** What a running simulator offers. */
export interface StripeSimShape {
  /** Asks without a socket; faults and delays are the same, on the Clock of the caller. */
  readonly send: (request: SimRequest) => Effect.Effect<SimResponse, ConnectionLost>
  /** `http://host:port`, to be used in place of `https://api.stripe.com`. */
  readonly url: string
  readonly host: string
  readonly port: number
  /** One entry per identity and currency: the payments that succeeded here and their sum in minor units. */
  readonly books: Effect.Effect<ReadonlyArray<BookEntry>>
  /** Payments that succeeded for this identity, in whatever currency. */
  readonly payments: (customer: string, billingPeriod: string, item?: string) => Effect.Effect<number>
  /** Every request that arrived, oldest first. */
  readonly requests: Effect.Effect<ReadonlyArray<RequestEntry>>
  readonly faults: {
    readonly add: (...faults: ReadonlyArray<Fault>) => Effect.Effect<void>
    /** Orders no more faults; delays that run already go on. */
    readonly clear: Effect.Effect<void>
    /** Ends every delay that is running, as if its time had passed. */
    readonly release: Effect.Effect<void>
  }
  readonly webhooks: {
    /** Sends events to this endpoint from now on; gives the secret that signs them. */
    readonly add: (endpoint: WebhookEndpoint) => Effect.Effect<string>
    readonly addFaults: (...faults: ReadonlyArray<WebhookFault>) => Effect.Effect<void>
    readonly clearFaults: Effect.Effect<void>
    /** Sends what a `reorder` holds back. */
    readonly release: Effect.Effect<void>
    /** Sends an event once more, as the Dashboard does; false when there is no such event. */
    readonly resend: (eventId: string) => Effect.Effect<boolean>
    /** Waits until nothing is being sent; what is late or waits for its next attempt is left alone. */
    readonly settled: Effect.Effect<void>
    /** What was tried, oldest first. */
    readonly deliveries: Effect.Effect<ReadonlyArray<WebhookDelivery>>
  }
  /** The virtual time in milliseconds: real time plus what was advanced. */
  readonly nowMs: Effect.Effect<number>
  /** Moves the virtual clock forward; what is due by then happens. */
  readonly advanceClock: (by: Duration.Input) => Effect.Effect<void>
  /** Runs now what 500 answers left for later, whatever the clock says. */
  readonly rollForward: Effect.Effect<void>
  /** Enforces these rates from now on. */
  readonly setRateLimits: (limits: RateLimitsOption) => Effect.Effect<void>
  /** Gives a restricted key its permissions; it has no others from now on. */
  readonly permitKey: (key: RestrictedKey) => Effect.Effect<void>
  /** The id of the account that owns the keys. */
  readonly accountId: string
  /** Opens a connected account; without `strict` each `acct_…` that a request names is there. */
  readonly connect: (accountId: string) => Effect.Effect<void>
  /**
   * Opens a dispute about a charge, or about the payment of a PaymentIntent, and gives its id; undefined when there is
   * nothing to dispute.
   */
  readonly dispute: (
    id: string,
    options?: { readonly reason?: string; readonly inquiry?: boolean }
  ) => Effect.Effect<string | undefined>
  /** Ends a dispute; false when it is not open. */
  readonly closeDispute: (disputeId: string, outcome: "won" | "lost") => Effect.Effect<boolean>
  /** Switches idempotency keys off and on. */
  readonly setIdempotency: (enabled: boolean) => Effect.Effect<void>
  /**
   * Ends what waits outside the API: a PaymentIntent (`processing`: the bank answers, `requires_action`: the customer
   * authenticates or gives up), a pending charge or a pending refund; a refund that succeeded can still fail. Without
   * an outcome its payment method decides. False when it does not wait.
   */
  readonly settle: (id: string, outcome?: "succeeded" | "failed") => Effect.Effect<boolean>
}

const stampLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

const makeStamp = Effect.gen(function*() {
  const indexes = yield* Effect.all(Array.from({ length: 8 }, () => Random.nextIntBetween(0, 35)))
  return indexes.map((index) => stampLetters[index]).join("")
})

const listen = (simulator: Simulator, host: string, port: number) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly sim: Server.SimServer; readonly port: number }, StripeSimError>((resume) => {
      const sim = Server.make(simulator)
      sim.server.once("error", (cause: NodeJS.ErrnoException) => {
        const reason = cause.code === "EADDRINUSE"
          ? new AddressInUse({ host, port })
          : new ListenFailed({ host, port, cause })
        resume(Effect.fail(new StripeSimError({ reason })))
      })
      sim.server.listen(port, host, () => {
        const address = sim.server.address()
        resume(Effect.succeed({ sim, port: typeof address === "object" && address !== null ? address.port : port }))
      })
    }),
    ({ sim }) => Effect.callback<void>((resume) => sim.close(() => resume(Effect.void)))
  )

/** The simulator of these options, without a way in. */
const build = (options: StripeSimOptions, clock: Clock.Clock) =>
  Effect.gen(function*() {
    const simulator = new Simulator({
      realNowMs: () => clock.currentTimeMillisUnsafe(),
      stamp: yield* makeStamp,
      strict: options.strict ?? false,
      maximumMinor: options.maximumMinor ?? defaultMaximumMinor,
      keyInUseType: options.keyInUseType ?? "idempotency_error",
      bankSettlesMs: Duration.toMillis(options.bankSettles ?? "4 days"),
      searchDelayMs: Duration.toMillis(options.searchDelay ?? "1 minute"),
      eventsLimit: options.eventsLimit ?? 100_000,
      journalLimit: options.journalLimit ?? 100_000
    })
    const http = overHttp()
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        http.abort()
        for (const stop of Array.from(simulator.timers)) stop()
      })
    )
    simulator.webhooks.post = options.receiveWebhook === undefined
      ? http.post
      : toFunction(yield* Effect.context<never>(), options.receiveWebhook)
    for (const endpoint of options.webhooks ?? []) simulator.addEndpoint(endpoint)
    simulator.idempotency.enabled = options.idempotency ?? true
    simulator.limits = rateLimitsOf(options.rateLimits ?? "off")
    for (const key of options.restrictedKeys ?? []) simulator.restrictedKeys.set(key.key, key)
    return simulator
  })

const shapeOf = (simulator: Simulator, host: string, port: number): StripeSimShape => ({
  url: `http://${host.includes(":") ? `[${host}]` : host}:${port}`,
  host,
  port,
  accountId: simulator.account.id,
  send: send(simulator),
  books: Effect.sync(() => simulator.books()),
  payments: (customer, billingPeriod, item = "") =>
    Effect.sync(() =>
      simulator.books().reduce(
        (sum, entry) =>
          entry.customer === customer && entry.billingPeriod === billingPeriod && entry.item === item
            ? sum + entry.payments
            : sum,
        0
      )
    ),
  requests: Effect.sync(() => simulator.requests().map((entry) => ({ ...entry }))),
  faults: {
    add: (...faults) => Effect.sync(() => faults.forEach((fault) => simulator.faults.add(fault))),
    clear: Effect.sync(() => simulator.faults.clear()),
    release: Effect.sync(() => simulator.release())
  },
  webhooks: {
    add: (endpoint) => Effect.sync(() => simulator.addEndpoint(endpoint).secret),
    addFaults: (...faults) => Effect.sync(() => faults.forEach((fault) => simulator.webhooks.addFault(fault))),
    clearFaults: Effect.sync(() => simulator.webhooks.clearFaults()),
    release: Effect.sync(() => simulator.webhooks.release()),
    resend: (eventId) => Effect.sync(() => simulator.resend(eventId)),
    settled: Effect.callback<void>((resume) => simulator.webhooks.whenIdle(() => resume(Effect.void))),
    deliveries: Effect.sync(() => simulator.webhooks.deliveries())
  },
  nowMs: Effect.sync(() => simulator.account.nowMs),
  advanceClock: (by) => Effect.sync(() => simulator.advance(Duration.toMillis(by))),
  rollForward: Effect.sync(() => simulator.rollForward(true)),
  setRateLimits: (limits) =>
    Effect.sync(() => {
      simulator.limits = rateLimitsOf(limits)
    }),
  permitKey: (key) => Effect.sync(() => void simulator.restrictedKeys.set(key.key, key)),
  connect: (accountId) => Effect.sync(() => void simulator.connect(accountId)),
  dispute: (id, about = {}) => Effect.sync(() => simulator.dispute(id, about)?.id),
  closeDispute: (id, outcome) => Effect.sync(() => simulator.closeDispute(id, outcome) !== undefined),
  setIdempotency: (enabled) =>
    Effect.sync(() => {
      simulator.idempotency.enabled = enabled
    }),
  settle: (id, outcome) => Effect.sync(() => simulator.settle(id, outcome) !== undefined)
})

/** The simulator as a service; see `StripeSimShape`. */
export class StripeSim extends Context.Service<StripeSim, StripeSimShape>()("@purser/stripe-sim/StripeSim") {
  /** Starts a simulator that lives as long as the scope. */
  static readonly make = (
    options: StripeSimOptions = {}
  ): Effect.Effect<StripeSimShape, StripeSimError, Scope.Scope> =>
    Effect.gen(function*() {
      const host = options.host ?? "127.0.0.1"
      // An external system lives in real time, also inside a test that has stopped its own clock.
      const simulator = yield* build(options, Clock.Clock.defaultValue())
      const { port } = yield* listen(simulator, host, options.port ?? 0)
      return StripeSim.of(shapeOf(simulator, host, port))
    })

  /**
   * A simulator that only `send` reaches: no socket, the program's own Clock and Random, so that a run is the same for
   * the same seed. Its `port` is 0.
   */
  static readonly makeInProcess = (options: StripeSimOptions = {}): Effect.Effect<StripeSimShape, never, Scope.Scope> =>
    Effect.gen(function*() {
      const simulator = yield* build(options, yield* Clock.Clock)
      return StripeSim.of(shapeOf(simulator, options.host ?? "stripe.sim", 0))
    })

  /** The simulator as a layer. */
  static readonly layer = (options: StripeSimOptions = {}): Layer.Layer<StripeSim, StripeSimError> =>
    Layer.effect(StripeSim, StripeSim.make(options))

  /** The simulator without a socket, as a layer. */
  static readonly layerInProcess = (options: StripeSimOptions = {}): Layer.Layer<StripeSim> =>
    Layer.effect(StripeSim, StripeSim.makeInProcess(options))
}
