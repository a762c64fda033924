/**
 * The processor of the comparison: `server.ts LATENCY_MS` answers each POST after that time, with an id, and says on
 * standard output where it listens. It counts, so that nobody is quick by leaving calls out.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

const latencyMs = Number(process.argv[2] ?? 0)
let calls = 0

const server = createServer({ keepAlive: true }, (request, response) => {
  if (request.method === "GET") return void response.end(JSON.stringify({ calls }))
  const answer = () => {
    calls++
    response.setHeader("content-type", "application/json")
    response.end(`{"id":"ch_${calls}","status":"succeeded"}`)
  }
  request.resume()
  request.once("end", () => latencyMs === 0 ? answer() : setTimeout(answer, latencyMs))
})
server.keepAliveTimeout = 60_000
server.listen(0, "127.0.0.1", () => process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`))
