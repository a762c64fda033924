/**
 * The rates that the simulator enforces when it is told to.
 *
 * Defines Stripe's published numbers as presets. Refuses to guess the limits on concurrency, which Stripe does not
 * publish: they are off in the presets and settable.
 */
import { Schema } from "effect"

/**
 * Requests per second in all, per endpoint and for search, each a bucket that holds one second's worth; requests that
 * run at once in all and per endpoint; changes of one PaymentIntent per hour. What is left out is not limited.
 */
export const RateLimits = Schema.Struct({
  globalPerSecond: Schema.optionalKey(Schema.Finite),
  endpointPerSecond: Schema.optionalKey(Schema.Finite),
  searchPerSecond: Schema.optionalKey(Schema.Finite),
  globalConcurrent: Schema.optionalKey(Schema.Int),
  endpointConcurrent: Schema.optionalKey(Schema.Int),
  intentChangesPerHour: Schema.optionalKey(Schema.Int)
})
/** See the schema. */
export type RateLimits = typeof RateLimits.Type

/** What Stripe grants a sandbox. */
export const sandboxLimits: RateLimits = {
  globalPerSecond: 25,
  endpointPerSecond: 25,
  searchPerSecond: 20,
  intentChangesPerHour: 1000
}

/** What Stripe grants a live account. */
export const liveLimits: RateLimits = { ...sandboxLimits, globalPerSecond: 100 }

/** A preset by its name, or limits of one's own. */
export const RateLimitsOption = Schema.Union([
  Schema.Literals(["off", "sandbox", "live"]),
  RateLimits
])
/** See the schema. */
export type RateLimitsOption = typeof RateLimitsOption.Type

/** The limits that an option names; `undefined` limits nothing. */
export const rateLimitsOf = (option: RateLimitsOption): RateLimits | undefined =>
  option === "off" ? undefined : option === "sandbox" ? sandboxLimits : option === "live" ? liveLimits : option
