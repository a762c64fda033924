/**
 * The sockets: HTTP in, the simulator's answer out, and the faults that only a socket can have.
 *
 * A native boundary on node:http, because a reset, a stalled body and a late answer need the socket itself.
 * Refuses to leave anything behind: `close` ends every timer and every connection at once.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import * as admin from "./admin.ts"
import { type Answer, fail, invalid, keyInUse, lockTimeout, rateLimited } from "./answer.ts"
import { refusalOf } from "./authorize.ts"
import type { Plan } from "./faults.ts"
import { parseForm } from "./params.ts"
import type { Call } from "./route.ts"
import type { OpenEntry, Simulator } from "./Simulator.ts"

const bodyLimitBytes = 1_000_000
const idleMs = 75_000

/** A server that is not listening yet, and its end. */
export interface SimServer {
  readonly server: Server
  readonly close: (done: () => void) => void
}

interface Exchange {
  readonly response: ServerResponse
  readonly call: Call
  readonly plan: Plan
  readonly entry: OpenEntry
}

const single = (value: string | Array<string> | undefined): string | undefined =>
  typeof value === "string" ? value : value?.[0]

/** What a fault answers before anything runs. */
const early = (exchange: Exchange, simulator: Simulator): Answer | undefined => {
  const fault = exchange.plan.verdict
  if (fault?.kind === "rateLimited") return rateLimited(fault.reason ?? "endpoint-rate")
  if (fault?.kind === "lockTimeout") return lockTimeout
  if (fault?.kind === "keyInUse") return keyInUse(exchange.call.key ?? "", simulator.account.settings.keyInUseType)
  return undefined
}

const writeJson = (response: ServerResponse, status: number, headers: Record<string, string>, body: string): void => {
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    ...headers
  })
  response.end(body)
}

/** Sends what a fault puts in place of the answer; false when the answer itself is to be sent. */
const sendInstead = ({ entry, plan, response }: Exchange, body: string): boolean => {
  const fault = plan.verdict
  switch (fault?.kind) {
    case "reset":
      response.socket?.resetAndDestroy()
      return true
    case "stall":
    case "truncate": {
      response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) })
      const half = Buffer.from(body).subarray(0, Math.floor(Buffer.byteLength(body) / 2))
      response.write(half, () => fault.kind === "truncate" && response.socket?.destroy())
      return true
    }
    case "badGateway": {
      entry.status = 502
      const page = "<html>\n<head><title>502 Bad Gateway</title></head>\n<body><center><h1>502 Bad Gateway</h1></center></body>\n</html>\n"
      response.writeHead(502, { "content-type": "text/html", "content-length": Buffer.byteLength(page) })
      response.end(page)
      return true
    }
    case "foreignJson":
      entry.status = fault.status
      writeJson(response, fault.status, {}, JSON.stringify({ message: "The request was not understood by a proxy." }))
      return true
    default:
      return false
  }
}

/** A server around a simulator. */
export const make = (simulator: Simulator): SimServer => {
  const timers = new Set<NodeJS.Timeout>()

  const later = (delayMs: number, act: () => void): void => {
    if (delayMs <= 0) return act()
    const goOn = () => {
      simulator.waiting.delete(goOn)
      timers.delete(timer)
      clearTimeout(timer)
      act()
    }
    const timer = setTimeout(goOn, delayMs)
    simulator.waiting.add(goOn)
    timers.add(timer)
  }

  const send = (exchange: Exchange, answer: Answer, original?: string): void => {
    const { call, entry, response } = exchange
    entry.replayed = original !== undefined
    const body = JSON.stringify(answer.body(original ?? call.requestId))
    const headers: Record<string, string> = { "request-id": call.requestId, "stripe-version": call.apiVersion }
    if (call.key !== undefined && simulator.keys.enabled) {
      headers["idempotency-key"] = call.key
      headers["original-request"] = original ?? call.requestId
      if (original !== undefined) headers["idempotent-replayed"] = "true"
    }
    if (response.destroyed || sendInstead(exchange, body)) return
    entry.status = answer.status
    writeJson(response, answer.status, { ...headers, ...answer.headers }, body)
  }

  const process = (exchange: Exchange): void => {
    const { call, entry, plan } = exchange
    const fault = plan.verdict
    if (fault?.kind === "reset" && fault.at === "before") return void exchange.response.socket?.resetAndDestroy()
    if ((fault?.kind === "badGateway" || fault?.kind === "foreignJson") && fault.effect === "none") {
      return void sendInstead(exchange, "")
    }
    const refused = refusalOf(call.authorization) ?? early(exchange, simulator)
    if (refused !== undefined) return send(exchange, refused)
    const verdict = simulator.keys.begin(simulator.account, call)
    if (!verdict.run) return later(plan.afterMs, () => send(exchange, verdict.answer, verdict.original))
    const held = simulator.hold(call)
    if (held !== undefined) {
      verdict.finish(held)
      return send(exchange, held)
    }
    later(plan.duringMs, () => {
      const answer = simulator.run(call, plan, entry)
      verdict.finish(answer)
      later(plan.afterMs, () => send(exchange, answer))
    })
  }

  const accept = (request: IncomingMessage, response: ServerResponse, text: string): void => {
    const target = request.url ?? "/"
    const queryAt = target.indexOf("?")
    const path = queryAt === -1 ? target : target.slice(0, queryAt)
    const method = request.method ?? "GET"
    simulator.rollForward()
    if (path.startsWith("/_sim/")) {
      const { body, status } = admin.answer(simulator, method, path, text)
      return writeJson(response, status, {}, JSON.stringify(body))
    }
    const params = parseForm(method === "POST" ? text : queryAt === -1 ? "" : target.slice(queryAt + 1))
    const call: Call = {
      method,
      path,
      params: params ?? {},
      key: method === "POST" ? single(request.headers["idempotency-key"]) : undefined,
      authorization: request.headers.authorization,
      apiVersion: single(request.headers["stripe-version"]) ?? "2026-10-28.endive",
      requestId: simulator.account.nextId("req_")
    }
    const plan = simulator.faults.plan(simulator.account, call)
    const exchange: Exchange = { response, call, plan, entry: simulator.arrive(call, plan) }
    if (params === undefined) return send(exchange, invalid("Too many parameters."))
    const type = request.headers["content-type"]
    if (text !== "" && type !== undefined && !type.startsWith("application/x-www-form-urlencoded")) {
      return send(
        exchange,
        invalid("Invalid request (check that your POST content type is application/x-www-form-urlencoded).")
      )
    }
    later(plan.beforeMs, () => process(exchange))
  }

  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    let bytes = 0
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes <= bodyLimitBytes) chunks.push(chunk)
    })
    request.on("end", () => {
      if (bytes <= bodyLimitBytes) return accept(request, response, Buffer.concat(chunks).toString("utf8"))
      const tooLarge = fail({ status: 413, saved: false, type: "invalid_request_error", message: "Request too large." })
      writeJson(response, 413, {}, JSON.stringify(tooLarge.body("")))
    })
    request.on("error", () => response.destroy())
  })
  // A client that pools connections meets no idle close while it works.
  server.keepAliveTimeout = idleMs

  return {
    server,
    close: (done) => {
      for (const timer of timers) clearTimeout(timer)
      timers.clear()
      simulator.waiting.clear()
      server.close(() => done())
      server.closeAllConnections()
    }
  }
}
