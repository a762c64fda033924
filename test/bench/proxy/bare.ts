/** A reverse proxy that does nothing: the same server and the same client as the spend-cap proxy, and no decision. Prints its port. */
import { Pool } from "undici"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

const pool = new Pool(process.argv[2]!, { connections: 128, pipelining: 1 })

const server = createServer((request, response) => {
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => {
    const { connection: _, host: __, ...headers } = request.headers
    const parts: Array<Buffer> = []
    pool.dispatch({ method: "POST", path: request.url!, headers: headers as Record<string, string>, body: Buffer.concat(chunks) }, {
      onRequestStart: () => {},
      onResponseStart: (_controller, status, given) => void response.writeHead(status, given),
      onResponseData: (_controller, chunk) => void parts.push(chunk),
      onResponseEnd: () => void response.end(Buffer.concat(parts)),
      onResponseError: () => void response.destroy()
    })
  })
})
server.keepAliveTimeout = 90_000
server.listen(0, "127.0.0.1", () => process.stdout.write(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}\n`))
