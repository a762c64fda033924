/**
 * The processor of the comparison: `server.ts LATENCY_MS` answers each POST after that time, with an id, and says on
 * standard output where it listens. It counts, so that nobody is quick by leaving calls out; where answers take their time, it
 * notes when each call had come and when its answer had left, and tells what it has noted since it was asked before.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

/** When a call had come, and when its answer had left. */
export type Answered = readonly [cameMs: number, leftMs: number]

const latencyMs = Number(process.argv[2] ?? 0)
let calls = 0
let answered: Array<Answered> = []

const server = createServer({ keepAlive: true }, (request, response) => {
  if (request.method === "GET") {
    response.end(JSON.stringify({ calls, answered }))
    answered = []
    return
  }
  const answer = () => {
    calls++
    response.setHeader("content-type", "application/json")
    response.end(`{"id":"ch_${calls}","status":"succeeded"}`)
  }
  request.resume()
  request.once("end", () => {
    if (latencyMs === 0) return answer()
    const cameMs = performance.now()
    response.once("finish", () => void answered.push([cameMs, performance.now()]))
    setTimeout(answer, latencyMs)
  })
})
server.keepAliveTimeout = 60_000
server.listen(0, "127.0.0.1", () => process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`))
