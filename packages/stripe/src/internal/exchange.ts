/**
 * One HTTP request and its whole answer, on Node's own client: the native boundary of this package.
 *
 * It sends exactly once, follows no redirect, and reads the body to its end before it answers, so that one deadline
 * covers everything. It knows nothing of Stripe.
 */
import * as http from "node:http"
import * as https from "node:https"

/** A complete answer. Header names are lower case. */
export interface HttpAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** No complete answer: the request may or may not have been carried out. */
export interface HttpFailure {
  readonly code: string | null
  /** Of the headers, when they arrived before the failure. */
  readonly status: number | null
  readonly headers: Readonly<Record<string, string>>
  readonly detail: string
}

/** What is sent. */
export interface HttpRequest {
  readonly method: string
  readonly path: string
  readonly headers: http.OutgoingHttpHeaders
  readonly body: string
}

/** A pool of connections to one origin. */
export interface Origin {
  readonly send: (
    request: HttpRequest,
    signal: AbortSignal,
    onEnd: (end: { readonly answer: HttpAnswer } | { readonly failure: HttpFailure }) => void
  ) => void
  readonly close: () => void
}

/** A hundred payment intents are some 300 kB; what is much longer is not what was asked for. */
const bodyLimitBytes = 8 * 1024 * 1024
/** A connection that idled for longer is likelier to have been closed by the other side than to be of use. */
const idleMs = 20_000

const flatten = (headers: http.IncomingHttpHeaders): Record<string, string> => {
  const flat: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flat[name] = Array.isArray(value) ? value.join(", ") : value
  }
  return flat
}

/** Connections to the URL's host; a path of the URL goes before every request's path. */
export const openOrigin = (url: URL, maxSockets: number): Origin => {
  const client = url.protocol === "http:" ? http : https
  const agent = new client.Agent({ keepAlive: true, maxSockets, timeout: idleMs })
  const prefix = url.pathname.replace(/\/+$/, "")
  const target = {
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? (url.protocol === "http:" ? 80 : 443) : Number(url.port),
    agent
  }
  return {
    close: () => agent.destroy(),
    send: ({ body, headers, method, path }, signal, onEnd) => {
      let head: { readonly status: number; readonly headers: Record<string, string> } | undefined
      let ended = false
      const fail = (error: NodeJS.ErrnoException) => {
        if (ended) return
        ended = true
        const detail = head === undefined ? error.message : `the body was cut off (${error.message})`
        onEnd({ failure: { code: error.code ?? null, status: head?.status ?? null, headers: head?.headers ?? {}, detail } })
      }
      const request = client.request({ ...target, method, path: prefix + path, headers, signal })
      request.on("error", fail)
      // Also when the other side takes the connection for something else (101): no response comes then.
      request.on("close", () => fail(new Error("the connection was closed without an answer")))
      request.on("response", (response) => {
        const received = { status: response.statusCode ?? 0, headers: flatten(response.headers) }
        head = received
        const chunks: Array<Buffer> = []
        let size = 0
        response.on("error", fail)
        response.on("data", (chunk: Buffer) => {
          size += chunk.length
          if (size > bodyLimitBytes) request.destroy(new Error(`it is longer than ${bodyLimitBytes} bytes`))
          else chunks.push(chunk)
        })
        response.on("end", () => {
          // A body that ends early may emit `end` without an error.
          if (!response.complete) return fail(new Error("it ended early"))
          if (ended) return
          ended = true
          onEnd({ answer: { ...received, body: Buffer.concat(chunks).toString("utf8") } })
        })
      })
      request.end(body)
    }
  }
}
