/**
 * The sockets: HTTP in, the simulator's answer out, and the faults that only a socket can have.
 *
 * A native boundary on node:http, because a reset, a stalled body and a late answer need the socket itself.
 * Refuses to leave anything behind: `close` ends every timer and every connection at once.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import * as admin from "./admin.ts"
import { fail } from "./answer.ts"
import { handle, type Wire } from "./exchange.ts"
import type { Simulator } from "./Simulator.ts"

const bodyLimitBytes = 1_000_000
const idleMs = 75_000

/** A server that is not listening yet, and its end. */
export interface SimServer {
  readonly server: Server
  readonly close: (done: () => void) => void
}

const single = (value: string | Array<string> | undefined): string | undefined =>
  typeof value === "string" ? value : value?.[0]

const headed = (headers: Readonly<Record<string, string>>, body: string) => ({
  ...headers,
  "content-length": Buffer.byteLength(body)
})

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

  const wireOf = (response: ServerResponse): Wire => ({
    later,
    write: (status, headers, body) => void response.writeHead(status, headed(headers, body)).end(body),
    half: (status, headers, body, close) => {
      response.writeHead(status, headed(headers, body))
      const half = Buffer.from(body).subarray(0, Math.floor(Buffer.byteLength(body) / 2))
      response.write(half, () => close && response.socket?.destroy())
    },
    reset: () => void response.socket?.resetAndDestroy(),
    gone: () => response.destroyed
  })

  const accept = (request: IncomingMessage, response: ServerResponse, body: string): void => {
    const { headers, method = "GET", url: target = "/" } = request
    if (target.startsWith("/_sim/")) {
      simulator.rollForward()
      const [path = ""] = target.split("?")
      const answer = admin.answer(simulator, method, path, body)
      const text = JSON.stringify(answer.body)
      return void response.writeHead(answer.status, headed({ "content-type": "application/json" }, text)).end(text)
    }
    handle(simulator, wireOf(response), { method, target, body, header: (name) => single(headers[name]) })
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
      const text = JSON.stringify(tooLarge.body(""))
      response.writeHead(413, headed({ "content-type": "application/json" }, text)).end(text)
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
