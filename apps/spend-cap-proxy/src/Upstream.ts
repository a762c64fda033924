/**
 * The way to Stripe: one fixed origin (and one for files), the real key, no redirect, no second attempt.
 *
 * Nothing here ends a request that was begun, but for a download whose client has left.
 */
import { Context, Effect, Layer, Redacted, Schema } from "effect"
import type { Dispatcher } from "@effect/platform-node/Undici"
import type { Readable } from "node:stream"
import { answered } from "./internal/headers.ts"
import type { Exchange } from "./internal/exchange.ts"
import type { ProxySettings } from "./ProxyConfig.ts"

/** No whole answer. `sent` is false only when not a byte of the request has left; `begun` is what of the answer arrived. */
export class UpstreamFailed extends Schema.TaggedError<UpstreamFailed>("@purser/spend-cap-proxy/UpstreamFailed")("UpstreamFailed", {
  sent: Schema.Boolean,
  code: Schema.String,
  begun: Schema.NullOr(Schema.Struct({ status: Schema.Int, headers: Schema.Array(Schema.String), body: Schema.Uint8Array }))
}) {
  override get message() {
    return this.sent ? `Stripe's answer did not arrive (${this.code})` : `no connection to Stripe (${this.code})`
  }
  get isRetryable() {
    return !this.sent
  }
}

/** What is sent. Names and values of `headers` alternate. */
export interface UpstreamRequest {
  readonly method: string
  readonly path: string
  readonly headers: ReadonlyArray<string>
  readonly body: Buffer | Readable | null
}

/** A whole answer. */
export interface UpstreamAnswer {
  readonly status: number
  readonly headers: ReadonlyArray<string>
  readonly body: Buffer
}

const answerLimitBytes = 16 * 1024 * 1024

const isFile = ({ method, path }: UpstreamRequest): boolean =>
  (method === "POST" && path === "/v1/files") || /^\/v1\/(?:files\/[^/]+\/contents|quotes\/[^/]+\/pdf)(?:\?|$)/.test(path)

const rawList = (raw: Dispatcher.DispatchController["rawHeaders"]): ReadonlyArray<string> =>
  Array.isArray(raw) ? raw.map((part) => typeof part === "string" ? part : part.toString("latin1")) : []

const codeOf = (error: Error & { readonly code?: string }): string => error.code ?? error.name

/** Stripe. */
export class Upstream extends Context.Service<Upstream, {
  /** Sends a call and reads its answer whole. It goes on when its fiber is interrupted. */
  readonly call: (request: UpstreamRequest) => Effect.Effect<UpstreamAnswer, UpstreamFailed>
  /** Sends a call and streams its answer to the client; answers the status and headers of it. */
  readonly pipe: (request: UpstreamRequest, exchange: Exchange) => Effect.Effect<Omit<UpstreamAnswer, "body">, UpstreamFailed>
}>()("@purser/spend-cap-proxy/Upstream") {
  /** Connections to the settings' origins; they close with the scope. */
  static readonly layer = (settings: ProxySettings): Layer.Layer<Upstream> => Layer.effect(Upstream, make(settings))
}

const make = Effect.fnUntraced(function*(settings: ProxySettings) {
  const { Pool } = yield* Effect.promise(() => import("@effect/platform-node/Undici"))
  const open = (url: URL) =>
    Effect.acquireRelease(
      Effect.sync(() =>
        new Pool(url.origin, {
          connections: settings.maxConnections,
          pipelining: 1,
          headersTimeout: settings.timeoutMs,
          bodyTimeout: settings.timeoutMs,
          connectTimeout: 10_000,
          // Shorter than Stripe's own idle time, so that a call rarely meets a connection that is being closed.
          keepAliveTimeout: 20_000,
          keepAliveMaxTimeout: 60_000
        })
      ),
      (pool) => Effect.promise(() => pool.destroy())
    )
  const api = yield* open(settings.upstream)
  const files = settings.filesUpstream.origin === settings.upstream.origin ? api : yield* open(settings.filesUpstream)
  const authorization = `Bearer ${Redacted.value(settings.stripeKey)}`

  const dispatch = (request: UpstreamRequest, handler: Dispatcher.DispatchHandler) =>
    void (isFile(request) ? files : api).dispatch({
      method: request.method,
      path: request.path,
      headers: [...request.headers, "Authorization", authorization],
      body: request.body,
      idempotent: false
    }, handler)

  return Upstream.of({
    call: (request) =>
      Effect.callback<UpstreamAnswer, UpstreamFailed>((resume) => {
        let sent = false
        let status = 0
        let headers: ReadonlyArray<string> = []
        let size = 0
        const chunks: Array<Buffer> = []
        dispatch(request, {
          onRequestStart: () => {
            sent = true
          },
          onResponseStart: (controller, statusCode) => {
            if (statusCode < 200) return
            status = statusCode
            headers = rawList(controller.rawHeaders)
          },
          onResponseData: (controller, chunk) => {
            size += chunk.length
            if (size > answerLimitBytes) controller.abort(new Error("the answer is too long"))
            else chunks.push(chunk)
          },
          onResponseEnd: () => resume(Effect.succeed({ status, headers, body: Buffer.concat(chunks) })),
          onResponseError: (_, error) =>
            resume(Effect.fail(new UpstreamFailed({ sent, code: codeOf(error), begun: status === 0 ? null : { status, headers, body: Buffer.concat(chunks) } })))
        })
      }),
    pipe: (request, { response }) =>
      Effect.callback<Omit<UpstreamAnswer, "body">, UpstreamFailed>((resume) => {
        let sent = false
        let status = 0
        let headers: ReadonlyArray<string> = []
        const abandoned = request.method === "GET"
        dispatch(request, {
          onRequestStart: (controller) => {
            sent = true
            if (abandoned) response.once("close", () => response.writableFinished ? undefined : controller.abort(new Error("the client has left")))
          },
          onResponseStart: (controller, statusCode) => {
            if (statusCode < 200) return
            status = statusCode
            headers = rawList(controller.rawHeaders)
            if (!response.destroyed) response.writeHead(status, answered(headers))
          },
          onResponseData: (controller, chunk) => {
            if (response.destroyed || response.write(chunk)) return
            controller.pause()
            const go = () => {
              response.off("drain", go).off("close", go)
              controller.resume()
            }
            response.once("drain", go).once("close", go)
          },
          onResponseEnd: () => {
            response.end()
            resume(Effect.succeed({ status, headers }))
          },
          onResponseError: (_, error) => resume(Effect.fail(new UpstreamFailed({ sent, code: codeOf(error), begun: null })))
        })
      })
  })
})
