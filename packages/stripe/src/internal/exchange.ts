/**
 * One HTTP request and its whole answer, on undici, which takes half of the processor that Node's own client takes: the
 * native boundary of this package.
 *
 * It sends exactly once, follows no redirect, and reads the body to its end before it answers, so that one deadline
 * covers everything. It knows nothing of Stripe.
 */
import { Buffer } from "node:buffer"
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http"
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

/** How an exchange ended. */
export type HttpEnd = { readonly answer: HttpAnswer } | { readonly failure: HttpFailure }

/** A pool of connections to one origin. */
export interface Origin {
  /** Sends, once, and answers with a way to stop it: what ends after that is not told. */
  readonly send: (request: HttpRequest, onEnd: (end: HttpEnd) => void) => () => void
  readonly close: () => void
}

/** A hundred payment intents are some 300 kB; what is much longer is not what was asked for. */
const bodyLimitBytes = 8 * 1024 * 1024
/** A connection that idled for longer is likelier to have been closed by the other side than to be of use. */
const idleMs = 20_000

/** Names and values in turns: an object's headers are looked through by undici for what is no header. */
const listed = (headers: OutgoingHttpHeaders): Array<string> => {
  const list: Array<string> = []
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    if (value !== undefined) list.push(name, Array.isArray(value) ? value.join(", ") : String(value))
  }
  return list
}

/** The answer's headers are nobody's but ours, and are changed in place. */
const flatten = (headers: IncomingHttpHeaders): Record<string, string> => {
  for (const name in headers) {
    const value = headers[name]
    if (typeof value !== "string") headers[name] = value?.join(", ") ?? ""
  }
  return headers as Record<string, string>
}

const failureOf = (error: NodeJS.ErrnoException, status: number | null, headers: Record<string, string>): HttpFailure => ({
  // A connection that the other side closed has the name that Node's own client gives it.
  code: error.code === "UND_ERR_SOCKET" ? "ECONNRESET" : error.code ?? null,
  status,
  headers,
  detail: status === null ? error.message : `the body was cut off (${error.message})`
})

/**
 * One request as the connection sees it. Of undici's ways this is the one below its streams and signals, which take more of a small
 * answer than the connection does.
 */
class Exchange implements Dispatcher.DispatchHandler {
  private readonly onEnd: (end: HttpEnd) => void
  private controller: Dispatcher.DispatchController | undefined
  private isOver = false
  private status: number | null = null
  private headers: Record<string, string> = {}
  private readonly chunks: Array<Buffer> = []

  constructor(onEnd: (end: HttpEnd) => void) {
    this.onEnd = onEnd
  }

  /** One that has no connection yet is given up when it gets one, before anything is sent. */
  stop() {
    this.isOver = true
    this.controller?.abort(new Error("nobody waits any more"))
  }

  onRequestStart(controller: Dispatcher.DispatchController) {
    this.controller = controller
    if (this.isOver) this.stop()
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders) {
    // What comes before the answer itself is none.
    if (status < 200) return
    this.status = status
    this.headers = flatten(headers)
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer) {
    this.chunks.push(chunk)
  }

  onResponseEnd() {
    // A turn later, and after undici's own work of that turn: by then the connection is free again, and the next request needs no other.
    process.nextTick(setImmediate, answered, this)
  }

  /** The answer is whole. */
  answered() {
    const { chunks, headers, status } = this
    const body = (chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)).toString()
    this.end({ answer: { status: status ?? 0, headers, body } })
  }

  onResponseError(_: unknown, error: Error) {
    this.end({ failure: failureOf(error, this.status, this.headers) })
  }

  private end(how: HttpEnd) {
    if (this.isOver) return
    this.isOver = true
    this.onEnd(how)
  }
}

const answered = (exchange: Exchange) => exchange.answered()

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
    send: ({ body, headers, method, path }, onEnd) => {
      const exchange = new Exchange(onEnd)
      pool.dispatch({ method: method as Dispatcher.HttpMethod, path: prefix + path, headers: listed(headers), body }, exchange)
      return () => exchange.stop()
    }
  }
}
