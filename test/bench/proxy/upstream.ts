/** A Stripe that answers every charge at once, so that what is measured is the proxy. Prints its port. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

const body = JSON.stringify({
  object: "charge", id: "ch_bench", status: "succeeded", amount: 100, currency: "usd", paid: true, captured: true, metadata: {}, filler: "x".repeat(1000)
})

const server = createServer((request, response) => {
  request.resume().on("end", () => {
    response.writeHead(200, { "content-type": "application/json", "content-length": body.length, "request-id": "req_bench" })
    response.end(body)
  })
})
server.keepAliveTimeout = 90_000
server.listen(0, "127.0.0.1", () => process.stdout.write(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}\n`))
