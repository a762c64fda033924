/**
 * The limits of one account: token buckets per second, counters of what runs at once.
 *
 * A bucket holds one second's worth and fills all the time, on the simulator's clock. A request that is refused takes
 * no token.
 */
import type { RateLimits } from "../RateLimits.ts"

/** Why a request is refused, in the words of `Stripe-Rate-Limited-Reason`. */
export type LimitReason =
  | "global-rate"
  | "endpoint-rate"
  | "global-concurrency"
  | "endpoint-concurrency"
  | "resource-specific"

class Bucket {
  private tokens: number
  private atMs: number

  constructor(perSecond: number, nowMs: number) {
    this.tokens = Math.max(1, perSecond)
    this.atMs = nowMs
  }
  /** True when there is a token now. */
  has(perSecond: number, nowMs: number): boolean {
    this.tokens = Math.min(Math.max(1, perSecond), this.tokens + Math.max(0, nowMs - this.atMs) * perSecond / 1000)
    this.atMs = nowMs
    // Sums of fractions may end just below a whole token.
    return this.tokens >= 1 - 1e-9
  }
  take(): void {
    this.tokens -= 1
  }
}

const hourMs = 60 * 60 * 1000

/** What a request is, for the limits. */
export interface Limited {
  /** Method and shape of the path: create and confirm are endpoints of their own. */
  readonly endpoint: string
  readonly search: boolean
  /** The PaymentIntent that it changes. */
  readonly intent: string | undefined
}

/** The limits of one account. */
export class RateLimiter {
  private readonly buckets = new Map<string, Bucket>()
  private readonly running = new Map<string, number>()
  private readonly changes = new Map<string, { sinceMs: number; count: number }>()
  private all = 0

  /** Lets the request in, or says why not. One that was let in must be given to `leave`. */
  enter(limits: RateLimits, request: Limited, nowMs: number): LimitReason | undefined {
    if (this.all >= (limits.globalConcurrent ?? Infinity)) return "global-concurrency"
    if ((this.running.get(request.endpoint) ?? 0) >= (limits.endpointConcurrent ?? Infinity)) return "endpoint-concurrency"
    const perEndpoint = request.search ? limits.searchPerSecond : limits.endpointPerSecond
    const global = this.bucket("", limits.globalPerSecond, nowMs)
    const endpoint = this.bucket(request.search ? "search" : request.endpoint, perEndpoint, nowMs)
    if (global !== undefined && !global.has(limits.globalPerSecond ?? 0, nowMs)) return "global-rate"
    if (endpoint !== undefined && !endpoint.has(perEndpoint ?? 0, nowMs)) return "endpoint-rate"
    if (this.changesTooOften(limits, request, nowMs)) return "resource-specific"
    global?.take()
    endpoint?.take()
    this.all++
    this.running.set(request.endpoint, (this.running.get(request.endpoint) ?? 0) + 1)
    return undefined
  }

  /** The request has its answer. */
  leave(request: Limited): void {
    this.all--
    this.running.set(request.endpoint, (this.running.get(request.endpoint) ?? 1) - 1)
  }

  private bucket(name: string, perSecond: number | undefined, nowMs: number): Bucket | undefined {
    if (perSecond === undefined) return undefined
    const known = this.buckets.get(name)
    if (known !== undefined) return known
    const made = new Bucket(perSecond, nowMs)
    this.buckets.set(name, made)
    return made
  }

  private changesTooOften(limits: RateLimits, { intent }: Limited, nowMs: number): boolean {
    if (limits.intentChangesPerHour === undefined || intent === undefined) return false
    const known = this.changes.get(intent)
    if (known === undefined || nowMs - known.sinceMs >= hourMs) {
      this.changes.set(intent, { sinceMs: nowMs, count: 1 })
      return false
    }
    return ++known.count > limits.intentChangesPerHour
  }
}
