/**
 * Keeps the calls of one process below what Stripe allows: a token bucket for each account in all and one for each of its
 * endpoints, a number of calls under way for each account, and one call at a time for each customer.
 *
 * It adapts: a 429 that names its reason slows the bucket that it is about, and quiet seconds bring the speed back. It waits
 * and refuses nothing; a call that was refused is repeated, if at all, by whoever made it.
 */
import { Clock, Context, Duration, Effect, Layer, Semaphore, type Scope } from "effect"
import { RateLimiter } from "effect/persistence"

/** What is allowed. `null` is no limit, until Stripe says otherwise. */
export interface LimitSettings {
  readonly allPerSecond: number | null
  readonly endpointPerSecond: number | null
  /** Calls under way at once, per account. */
  readonly concurrency: number
}

/** What a call counts for. */
export interface Turn {
  /** "" for the account that owns the key. */
  readonly account: string
  /** Method and shape of the path. */
  readonly endpoint: string
}

/** The limits in force. */
export interface Limiter {
  /** Runs the call when it is its turn. */
  readonly inTurn: <A, E, R>(turn: Turn, call: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Runs a whole call alone among those of its customer. */
  readonly alone: <A, E, R>(customer: string, call: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** A 429 with its reason. */
  readonly slowDown: (turn: Turn, reason: string) => Effect.Effect<void>
}

const slowerBy = 0.9
const regainedPerSecond = 0.03
/** A second's worth in so many pieces: a burst is short, so that the average over any second stays near the rate. */
const pieces = 12
const forgetAfterMs = 60_000

/** One bucket's speed. */
class Pace {
  readonly nominal: number | null
  private current: number | null
  private changedMs = 0
  private second = 0
  private sent = 0
  private sentBefore = 0

  constructor(nominal: number | null) {
    this.nominal = nominal
    this.current = nominal
  }

  /** Calls per second now, counted as one more. */
  next(nowMs: number): number | null {
    const second = Math.floor(nowMs / 1000)
    if (second !== this.second) {
      this.sentBefore = second === this.second + 1 ? this.sent : 0
      this.second = second
      this.sent = 0
    }
    this.sent += 1
    const quietMs = nowMs - this.changedMs
    if (this.current === null || quietMs < 1000 || this.current === this.nominal) return this.current
    if (this.nominal === null && quietMs > forgetAfterMs) return this.current = null
    const regained = this.current + (this.nominal ?? this.current) * regainedPerSecond * quietMs / 1000
    if (this.nominal === null) return this.current
    this.changedMs = nowMs
    return this.current = Math.min(this.nominal, regained)
  }

  /** Once a second at the most: the refusals of one moment are one piece of news. */
  slowDown(nowMs: number): void {
    if (nowMs - this.changedMs < 1000) return
    this.changedMs = nowMs
    this.current = Math.max(1, (this.current ?? Math.max(this.sent, this.sentBefore)) * slowerBy)
  }
}

/** What is known of one account. */
class Account {
  readonly name: string
  readonly all: Pace
  readonly permits: Semaphore.Semaphore
  private readonly endpoints = new Map<string, Pace>()
  private readonly settings: LimitSettings

  constructor(name: string, settings: LimitSettings) {
    this.name = name
    this.settings = settings
    this.all = new Pace(settings.allPerSecond)
    this.permits = Semaphore.makeUnsafe(settings.concurrency)
  }

  paceOf(endpoint: string): Pace {
    const known = this.endpoints.get(endpoint)
    if (known !== undefined) return known
    const made = new Pace(this.settings.endpointPerSecond)
    this.endpoints.set(endpoint, made)
    return made
  }
}

/** A limiter whose buckets live as long as the scope. */
export const makeLimiter = Effect.fnUntraced(function*(settings: LimitSettings): Effect.fn.Return<Limiter, never, Scope.Scope> {
  const services = yield* Layer.build(RateLimiter.layer.pipe(Layer.provide(RateLimiter.layerStoreMemory)))
  const buckets = Context.get(services, RateLimiter.RateLimiter)
  const accounts = new Map<string, Account>()
  const customers = new Map<string, { readonly lock: Semaphore.Semaphore; waiting: number }>()

  const accountOf = (name: string): Account => {
    const known = accounts.get(name)
    if (known !== undefined) return known
    const made = new Account(name, settings)
    accounts.set(name, made)
    return made
  }

  /** A token of a bucket, where its pace has a limit. */
  const counted = <A, E, R>(account: Account, bucket: string, pace: Pace, nowMs: number, next: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
    const rate = pace.next(nowMs)
    return rate === null ? next : Effect.andThen(taken(`${account.name} ${bucket}`, rate), next)
  }

  const taken = Effect.fnUntraced(function*(key: string, rate: number) {
    const limit = Math.max(1, Math.floor(rate / pieces))
    // Buckets in memory that may be overdrawn refuse nobody.
    const { delay } = yield* Effect.orDie(buckets.consume({
      key, algorithm: "token-bucket", onExceeded: "delay", limit, window: Duration.millis(limit * 1000 / rate)
    }))
    if (!Duration.isZero(delay)) yield* Effect.sleep(delay)
  })

  return {
    inTurn: (turn, call) =>
      Effect.clockWith((clock) => {
        const account = accountOf(turn.account)
        const permitted = account.permits.withPermit(call)
        const inAll = Effect.suspend(() => counted(account, "all", account.all, clock.currentTimeMillisUnsafe(), permitted))
        return counted(account, turn.endpoint, account.paceOf(turn.endpoint), clock.currentTimeMillisUnsafe(), inAll)
      }),
    alone: (customer, call) =>
      Effect.suspend(() => {
        let entry = customers.get(customer)
        if (entry === undefined) customers.set(customer, entry = { lock: Semaphore.makeUnsafe(1), waiting: 0 })
        const { lock } = entry
        entry.waiting += 1
        return Effect.ensuring(lock.withPermit(call), Effect.sync(() => {
          const left = customers.get(customer)
          if (left !== undefined && --left.waiting === 0) customers.delete(customer)
        }))
      }),
    slowDown: (turn, reason) =>
      Effect.map(Clock.currentTimeMillis, (nowMs) => {
        const account = accountOf(turn.account)
        if (reason.startsWith("global-")) account.all.slowDown(nowMs)
        if (reason.startsWith("endpoint-")) account.paceOf(turn.endpoint).slowDown(nowMs)
      })
  }
})
