/**
 * The way of a webhook over HTTP: one request, one status.
 *
 * A native boundary on node:http. Refuses redirects, as Stripe does: only 2xx is an answer that counts.
 */
import { request as httpRequest } from "node:http"
import { request as httpsRequest } from "node:https"
import type { Post } from "./Webhooks.ts"

const patienceMs = 20_000

/** Posts over HTTP; `abort` gives up what is running. */
export const overHttp = (): { readonly post: Post; readonly abort: () => void } => {
  const running = new Set<() => void>()
  return {
    post: ({ body, headers, url }, done) => {
      const make = url.startsWith("https:") ? httpsRequest : httpRequest
      const outgoing = make(url, {
        method: "POST",
        agent: false,
        timeout: patienceMs,
        headers: { ...headers, "content-length": Buffer.byteLength(body) }
      })
      let told = false
      const tell = (status: number | null) => {
        running.delete(give)
        if (!told) {
          told = true
          done(status)
        }
      }
      const give = () => {
        told = true
        outgoing.destroy()
      }
      running.add(give)
      outgoing.on("response", (response) => {
        response.resume()
        response.on("error", () => tell(null))
        response.on("end", () => tell(response.statusCode ?? null))
        response.on("close", () => tell(null))
      })
      outgoing.on("timeout", () => outgoing.destroy())
      outgoing.on("error", () => tell(null))
      outgoing.on("close", () => tell(null))
      outgoing.end(body)
    },
    abort: () => {
      for (const give of running) give()
      running.clear()
    }
  }
}
