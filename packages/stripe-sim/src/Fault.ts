/**
 * The faults a test can order: what goes wrong, for which request.
 *
 * Defines them as Schemas, so a fault is the same value in a program and in `POST /_sim/faults`. Refuses chance:
 * a fault fires for the requests that its match and its count name, and for no other.
 */
import { Schema } from "effect"

/**
 * Which requests. A text may hold `*` (any text without `/`) and `**` (any text). `customer` and `metadata` look at
 * the request's parameters and at the PaymentIntent, charge or invoice in its path. Of the requests that match, the fault fires from
 * the `nth` (default 1) for `times` of them (default 1, "always" for no end).
 */
export const FaultMatch = Schema.Struct({
  method: Schema.optionalKey(Schema.Literals(["GET", "POST", "DELETE"])),
  path: Schema.optionalKey(Schema.String),
  idempotencyKey: Schema.optionalKey(Schema.String),
  customer: Schema.optionalKey(Schema.String),
  metadata: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  nth: Schema.optionalKey(Schema.Int),
  times: Schema.optionalKey(Schema.Union([Schema.Int, Schema.Literal("always")]))
})
/** See the schema. */
export type FaultMatch = typeof FaultMatch.Type

/**
 * What goes wrong.
 *
 * - `delay`: `before` on the way in (nothing has arrived: a later request overtakes), `during` (the idempotency key
 *   and the object are held, nothing moved yet), `after` (done and remembered, only the answer is late).
 * - `reset`: the connection is reset (RST), `before` anything ran or `after` everything ran.
 * - `stall`: everything ran, the headers and half of the body arrive, then nothing more.
 * - `truncate`: as `stall`, but the connection is closed.
 * - `serverError`: 500. `effect`: `none` nothing ran, `done` it ran, `later` it runs once the virtual clock is
 *   `laterMs` (default 60 000) further. `stored`: the idempotency key remembers the 500.
 * - `rateLimited`, `lockTimeout`: 429 before anything ran, with and without the reason header.
 * - `keyInUse`: 409 before anything ran.
 * - `badGateway`: an HTML 502 between the caller and Stripe; `effect` says whether Stripe ran it (and remembers it).
 * - `foreignJson`: JSON without an `error` member and with this status; `effect` as before.
 */
export const FaultAction = Schema.Union([
  Schema.Struct({
    kind: Schema.Literal("delay"),
    at: Schema.Literals(["before", "during", "after"]),
    delayMs: Schema.Finite
  }),
  Schema.Struct({ kind: Schema.Literal("reset"), at: Schema.Literals(["before", "after"]) }),
  Schema.Struct({ kind: Schema.Literal("stall") }),
  Schema.Struct({ kind: Schema.Literal("truncate") }),
  Schema.Struct({
    kind: Schema.Literal("serverError"),
    effect: Schema.Literals(["none", "done", "later"]),
    stored: Schema.Boolean,
    laterMs: Schema.optionalKey(Schema.Finite)
  }),
  Schema.Struct({
    kind: Schema.Literal("rateLimited"),
    reason: Schema.optionalKey(
      Schema.Literals(["global-rate", "endpoint-rate", "global-concurrency", "endpoint-concurrency", "resource-specific"])
    )
  }),
  Schema.Struct({ kind: Schema.Literal("lockTimeout") }),
  Schema.Struct({ kind: Schema.Literal("keyInUse") }),
  Schema.Struct({ kind: Schema.Literal("badGateway"), effect: Schema.Literals(["none", "done"]) }),
  Schema.Struct({
    kind: Schema.Literal("foreignJson"),
    status: Schema.Int,
    effect: Schema.Literals(["none", "done"])
  })
])
/** See the schema. */
export type FaultAction = typeof FaultAction.Type

/** A fault: the requests it is for (all when left out) and what happens to them. */
export const Fault = Schema.Struct({
  match: Schema.optionalKey(FaultMatch),
  action: FaultAction
})
/** See the schema. */
export type Fault = typeof Fault.Type
