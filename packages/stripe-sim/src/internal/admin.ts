/**
 * `/_sim/…`: the simulator's own endpoints, for tests and programs outside this process.
 */
import { Array as Arr, Order, Result, Schema } from "effect"
import type { BookEntry } from "../Books.ts"
import { Fault } from "../Fault.ts"
import { WebhookEndpoint, WebhookFault } from "../Webhook.ts"
import { RateLimitsOption, rateLimitsOf } from "../RateLimits.ts"
import { RestrictedKey } from "../RestrictedKey.ts"
import { dispute as disputeShape } from "./renderDispute.ts"
import type { DisputeRecord } from "./records.ts"
import type { Simulator } from "./Simulator.ts"

/** An answer of the admin interface, as JSON. */
export interface AdminAnswer {
  readonly status: number
  readonly body: unknown
}

const done: AdminAnswer = { status: 200, body: { ok: true } }

const decode = <A>(schema: Schema.Decoder<A>, text: string, use: (value: A) => AdminAnswer, unknown: "ignore" | "error" = "ignore"): AdminAnswer => {
  const decoded = Schema.decodeResult(Schema.fromJsonString(schema), { onExcessProperty: unknown })(text === "" ? "{}" : text)
  return Result.isSuccess(decoded)
    ? use(decoded.success)
    : { status: 400, body: { error: { message: String(decoded.failure) } } }
}

const Advance = Schema.Struct({ ms: Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)) })
const Switch = Schema.Struct({ enabled: Schema.Boolean })
const Settle = Schema.Struct({ outcome: Schema.optionalKey(Schema.Literals(["succeeded", "failed"])) })

const settled = (simulator: Simulator, id: string, text: string): AdminAnswer =>
  decode(Settle, text, ({ outcome }) => {
    const object = simulator.settle(id, outcome)
    return object === undefined
      ? { status: 404, body: { error: { message: `${id} is not waiting to be settled` } } }
      : { status: 200, body: object }
  })

const Dispute = Schema.Struct({ reason: Schema.optionalKey(Schema.String), inquiry: Schema.optionalKey(Schema.Boolean) })
const Close = Schema.Struct({ outcome: Schema.Literals(["won", "lost"]) })

const disputed = (dispute: DisputeRecord | undefined, otherwise: string): AdminAnswer =>
  dispute === undefined
    ? { status: 404, body: { error: { message: otherwise } } }
    : { status: 200, body: disputeShape(dispute) }

const clock = (simulator: Simulator): AdminAnswer => ({ status: 200, body: { nowMs: simulator.account.nowMs } })

/** By customer, period and item, so that whoever reads the books of charges that were made at once finds them in their place. */
const sorted = (books: ReadonlyArray<BookEntry>): ReadonlyArray<BookEntry> => {
  const placeOf = ({ billingPeriod, customer, item }: BookEntry) => JSON.stringify([customer, billingPeriod, item])
  return Arr.sort(books, Order.mapInput(Order.String, placeOf))
}

/** Answers an admin request. */
export const answer = (simulator: Simulator, method: string, path: string, text: string): AdminAnswer => {
  if (method === "POST" && path.startsWith("/_sim/settle/")) return settled(simulator, path.slice(13), text)
  if (method === "POST" && path.startsWith("/_sim/webhooks/resend/")) {
    return simulator.resend(path.slice(22)) ? done : { status: 404, body: { error: { message: "No such event" } } }
  }
  if (method === "POST" && path.startsWith("/_sim/dispute/")) {
    const id = path.slice(14)
    return decode(Dispute, text, (options) => disputed(simulator.dispute(id, options), `${id} cannot be disputed`))
  }
  if (method === "POST" && path.startsWith("/_sim/close_dispute/")) {
    const id = path.slice(20)
    return decode(Close, text, ({ outcome }) => disputed(simulator.closeDispute(id, outcome), `${id} is no open dispute`))
  }
  if (method === "POST" && path.startsWith("/_sim/accounts/")) {
    simulator.connect(path.slice(15))
    return done
  }
  switch (`${method} ${path}`) {
    case "GET /_sim/health":
      return done
    case "GET /_sim/books":
      return { status: 200, body: sorted(simulator.books()) }
    case "GET /_sim/requests":
      return { status: 200, body: simulator.requests() }
    case "GET /_sim/faults":
      return { status: 200, body: simulator.faults.list() }
    case "POST /_sim/faults":
      return decode(Schema.Union([Fault, Schema.Array(Fault)]), text, (given) => {
        const faults: ReadonlyArray<Fault> = "action" in given ? [given] : given
        for (const fault of faults) simulator.faults.add(fault)
        return done
      })
    case "DELETE /_sim/faults":
      simulator.faults.clear()
      return done
    case "POST /_sim/faults/release":
      simulator.release()
      return done
    case "GET /_sim/clock":
      return clock(simulator)
    case "POST /_sim/clock/advance":
      return decode(Advance, text, ({ ms }) => {
        simulator.advance(ms)
        return clock(simulator)
      })
    case "POST /_sim/roll_forward":
      simulator.rollForward(true)
      return done
    case "POST /_sim/idempotency":
      return decode(Switch, text, ({ enabled }) => {
        simulator.idempotency.enabled = enabled
        return done
      })
    case "POST /_sim/limits":
      return decode(RateLimitsOption, text, (limits) => {
        simulator.limits = rateLimitsOf(limits)
        return done
        // A limit of another name would limit nothing.
      }, "error")
    case "DELETE /_sim/limits":
      simulator.limits = undefined
      return done
    case "POST /_sim/keys":
      return decode(RestrictedKey, text, (key) => {
        simulator.restrictedKeys.set(key.key, key)
        return done
      })
    case "POST /_sim/webhooks":
      return decode(WebhookEndpoint, text, (endpoint) => ({
        status: 200,
        body: { secret: simulator.addEndpoint(endpoint).secret }
      }))
    case "POST /_sim/webhooks/faults":
      return decode(Schema.Union([WebhookFault, Schema.Array(WebhookFault)]), text, (given) => {
        const faults: ReadonlyArray<WebhookFault> = "action" in given ? [given] : given
        for (const fault of faults) simulator.webhooks.addFault(fault)
        return done
      })
    case "DELETE /_sim/webhooks/faults":
      simulator.webhooks.clearFaults()
      return done
    case "POST /_sim/webhooks/release":
      simulator.webhooks.release()
      return done
    case "GET /_sim/webhooks/deliveries":
      return { status: 200, body: simulator.webhooks.deliveries() }
    default:
      return { status: 404, body: { error: { message: `No such admin endpoint: ${method} ${path}` } } }
  }
}
