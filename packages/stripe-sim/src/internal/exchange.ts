/**
 * The way of one request through the simulator: faults, key, limits, idempotency, endpoint, answer.
 *
 * Knows no socket: a `Wire` writes, waits and breaks off, so the same way serves HTTP and a call inside a program.
 */
import type { Account } from "./Account.ts"
import { type Answer, invalid, keyInUse, lockTimeout, rateLimited } from "./answer.ts"
import { admit } from "./authorize.ts"
import { find } from "./endpoints.ts"
import type { Plan } from "./faults.ts"
import { type Params, parseForm } from "./params.ts"
import type { Limited } from "./RateLimiter.ts"
import type { Call } from "./route.ts"
import type { OpenEntry, Simulator } from "./Simulator.ts"

/** Where the answer goes. */
export interface Wire {
  /** Goes on after this real time, or when a test releases all delays. */
  readonly later: (delayMs: number, act: () => void) => void
  readonly write: (status: number, headers: Readonly<Record<string, string>>, body: string) => void
  /** Half of the body, then silence, or the end of the connection. */
  readonly half: (status: number, headers: Readonly<Record<string, string>>, body: string, close: boolean) => void
  /** Breaks the connection off. */
  readonly reset: () => void
  /** True when nobody waits for the answer any more. */
  readonly gone: () => boolean
}

/** A request as it arrived. `header` takes lower-case names. */
export interface Arrival {
  readonly method: string
  /** Path and query. */
  readonly target: string
  readonly header: (name: string) => string | undefined
  readonly body: string
}

interface Exchange {
  readonly wire: Wire
  readonly call: Call
  readonly plan: Plan
  readonly entry: OpenEntry
}

const json = { "content-type": "application/json" }
const page =
  "<html>\n<head><title>502 Bad Gateway</title></head>\n<body><center><h1>502 Bad Gateway</h1></center></body>\n</html>\n"

/** What a fault answers before anything runs. */
const early = ({ call, plan }: Exchange, simulator: Simulator): Answer | undefined => {
  const fault = plan.verdict
  if (fault?.kind === "rateLimited") return rateLimited(fault.reason ?? "endpoint-rate")
  if (fault?.kind === "lockTimeout") return lockTimeout
  if (fault?.kind === "keyInUse") return keyInUse(call.key ?? "", simulator.account.settings.keyInUseType)
  return undefined
}

/** Sends what a fault puts in place of the answer; false when the answer itself is to be sent. */
const sendInstead = ({ entry, plan, wire }: Exchange, body: string): boolean => {
  const fault = plan.verdict
  switch (fault?.kind) {
    case "reset":
      wire.reset()
      return true
    case "stall":
    case "truncate":
      wire.half(200, json, body, fault.kind === "truncate")
      return true
    case "badGateway":
      entry.status = 502
      wire.write(502, { "content-type": "text/html" }, page)
      return true
    case "foreignJson":
      entry.status = fault.status
      wire.write(fault.status, json, JSON.stringify({ message: "The request was not understood by a proxy." }))
      return true
    default:
      return false
  }
}

const send = (simulator: Simulator, exchange: Exchange, answer: Answer, original?: string): void => {
  const { call, entry, wire } = exchange
  entry.replayed = original !== undefined
  const body = JSON.stringify(answer.body(original ?? call.requestId))
  const headers: Record<string, string> = { ...json, "request-id": call.requestId, "stripe-version": call.apiVersion }
  if (call.key !== undefined && simulator.idempotency.enabled) {
    headers["idempotency-key"] = call.key
    headers["original-request"] = original ?? call.requestId
    if (original !== undefined) headers["idempotent-replayed"] = "true"
  }
  if (call.stripeAccount !== undefined) headers["stripe-account"] = call.stripeAccount
  if (wire.gone() || sendInstead(exchange, body)) return
  entry.status = answer.status
  wire.write(answer.status, { ...headers, ...answer.headers }, body)
}

const limitedOf = (call: Call): Limited => {
  const found = find(call.method, call.path)
  return {
    endpoint: found === undefined ? "" : `${found.route.method} ${found.route.path}`,
    search: call.path.endsWith("/search"),
    intent: call.method === "POST" && call.path.startsWith("/v1/payment_intents/") ? call.path.split("/")[3] : undefined
  }
}

/** Idempotency, the object and the endpoint; `done` once the answer is on its way. */
const run = (simulator: Simulator, account: Account, exchange: Exchange, done: () => void): void => {
  const { call, entry, plan, wire } = exchange
  const finish = (answer: Answer, original?: string) =>
    wire.later(plan.afterMs, () => {
      done()
      send(simulator, exchange, answer, original)
    })
  const verdict = account.keys.begin(account, call)
  if (!verdict.run) return finish(verdict.answer, verdict.original)
  const held = simulator.hold(account, call)
  if (held !== undefined) {
    verdict.finish(held)
    done()
    return send(simulator, exchange, held)
  }
  wire.later(plan.duringMs, () => {
    const answer = simulator.run(account, call, plan, entry)
    verdict.finish(answer)
    finish(answer)
  })
}

const process = (simulator: Simulator, exchange: Exchange): void => {
  const { call, plan, wire } = exchange
  const fault = plan.verdict
  if (fault?.kind === "reset" && fault.at === "before") return wire.reset()
  if ((fault?.kind === "badGateway" || fault?.kind === "foreignJson") && fault.effect === "none") {
    return void sendInstead(exchange, "")
  }
  const account = admit(simulator, call)
  if (!("intents" in account)) return send(simulator, exchange, account)
  const refused = early(exchange, simulator)
  if (refused !== undefined) return send(simulator, exchange, refused)
  const { limits } = simulator
  if (limits === undefined) return run(simulator, account, exchange, () => {})
  const limited = limitedOf(call)
  const reason = account.limiter.enter(limits, limited, account.nowMs)
  if (reason !== undefined) return send(simulator, exchange, rateLimited(reason))
  run(simulator, account, exchange, () => account.limiter.leave(limited))
}

/** Takes a request and answers it over the wire, now or later. */
export const handle = (simulator: Simulator, wire: Wire, { body, header, method, target }: Arrival): void => {
  simulator.rollForward()
  const queryAt = target.indexOf("?")
  const path = queryAt === -1 ? target : target.slice(0, queryAt)
  const params: Params | undefined = parseForm(method === "POST" ? body : queryAt === -1 ? "" : target.slice(queryAt + 1))
  const call: Call = {
    method,
    path,
    params: params ?? {},
    key: method === "POST" ? header("idempotency-key") : undefined,
    authorization: header("authorization"),
    stripeAccount: header("stripe-account"),
    apiVersion: header("stripe-version") ?? "2026-10-28.endive",
    requestId: simulator.account.nextId("req_")
  }
  const plan = simulator.faults.plan(simulator.accountOf(call.stripeAccount) ?? simulator.account, call)
  const exchange: Exchange = { wire, call, plan, entry: simulator.arrive(call, plan) }
  if (params === undefined) return send(simulator, exchange, invalid("Too many parameters."))
  const type = header("content-type")
  if (body !== "" && type !== undefined && !type.startsWith("application/x-www-form-urlencoded")) {
    return send(
      simulator,
      exchange,
      invalid("Invalid request (check that your POST content type is application/x-www-form-urlencoded).")
    )
  }
  wire.later(plan.beforeMs, () => process(simulator, exchange))
}
