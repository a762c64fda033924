/**
 * One HTTP request and its whole answer, on undici, which takes half of the processor that Node's own client takes: the
 * native boundary of this package.
 *
 * It sends exactly once, follows no redirect, and reads the body to its end before it answers, so that one deadline
 * covers everything. It knows nothing of Stripe.
 */
import type { OutgoingHttpHeaders } from "node:http"
import { type Dispatcher, Pool } from "undici"

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
  readonly headers: OutgoingHttpHeaders
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

const flatten = (headers: Dispatcher.ResponseData["headers"]): Record<string, string> => {
  const flat: Record<string, string> = {}
  for (const name in headers) {
    const value = headers[name]
    if (value !== undefined) flat[name] = Array.isArray(value) ? value.join(", ") : value
  }
  return flat
}

/** Names and values in turns: an object's headers are looked through by undici for what is no header. */
const listed = (headers: OutgoingHttpHeaders): Array<string> => {
  const list: Array<string> = []
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    if (value !== undefined) list.push(name, Array.isArray(value) ? value.join(", ") : String(value))
  }
  return list
}

/** Connections to the URL's host; a path of the URL goes before every request's path. */
export const openOrigin = (url: URL, maxSockets: number): Origin => {
  // One request at a time on each connection, so that none is ever behind one that fails, and sent again. Time-outs are the caller's.
  const pool = new Pool(url.origin, {
    connections: maxSockets,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: idleMs,
    keepAliveMaxTimeout: idleMs,
    connectTimeout: 0,
    headersTimeout: 0,
    bodyTimeout: 0,
    maxResponseSize: bodyLimitBytes
  })
  const prefix = url.pathname.replace(/\/+$/, "")
  return {
    close: () => void pool.destroy(),
    send: ({ body, headers, method, path }, signal, onEnd) => {
      const failed = (error: NodeJS.ErrnoException, head?: { readonly status: number; readonly headers: Record<string, string> }) => {
        // Nobody waits any more, and what the signal gives for a reason is no error of the network.
        if (signal.aborted) return
        const detail = head === undefined ? error.message : `the body was cut off (${error.message})`
        // A connection that the other side closed has the name that Node's own client gives it.
        const code = error.code === "UND_ERR_SOCKET" ? "ECONNRESET" : error.code ?? null
        onEnd({ failure: { code, status: head?.status ?? null, headers: head?.headers ?? {}, detail } })
      }
      pool.request({ method: method as Dispatcher.HttpMethod, path: prefix + path, headers: listed(headers), body, signal }, (error, response) => {
        if (error !== null) return failed(error)
        const head = { status: response.statusCode, headers: flatten(response.headers) }
        // A turn later: by then the connection is free again, and the next request needs no other.
        response.body.text().then((body) => void setImmediate(() => onEnd({ answer: { ...head, body } })), (error: Error) => failed(error, head))
      })
    }
  }
}
