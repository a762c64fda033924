/**
 * The HTTP side of webhooks, to be mounted in whatever server there is: raw bytes in, a status out.
 *
 * 200 is said only once the event is kept; 400 and 413 mean that nothing was; 503 asks the processor to come again. No
 * answer repeats anything of the call.
 */
import { type Config, Context, Data, Effect, Layer, Stream } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { boundedInt } from "./internal/boundedInt.ts"
import { Webhooks } from "./Webhooks.ts"

class BodyTooLarge extends Data.TaggedError("BodyTooLarge") {}

const reply = (status: number, body: Record<string, unknown>) => HttpServerResponse.jsonUnsafe(body, { status })

/** The body as it came, or a failure as soon as it is longer than allowed. */
const readBody = (request: HttpServerRequest.HttpServerRequest, maxBytes: number) =>
  Effect.gen(function*() {
    const announced = Number(request.headers["content-length"] ?? "0")
    if (announced > maxBytes) return yield* new BodyTooLarge()
    const chunks: Array<Uint8Array> = []
    let size = 0
    yield* Stream.runForEach(request.stream, (chunk) =>
      Effect.suspend(() => {
        size += chunk.byteLength
        if (size > maxBytes) return Effect.fail(new BodyTooLarge())
        chunks.push(chunk)
        return Effect.void
      }))
    return Buffer.concat(chunks)
  })

/** The handler of one endpoint. */
export class WebhookHttp extends Context.Service<WebhookHttp, {
  /** Answers the request at hand, whatever its path. */
  readonly handle: Effect.Effect<HttpServerResponse.HttpServerResponse, never, HttpServerRequest.HttpServerRequest>
}>()("@purser/engine/WebhookHttp") {
  /** `PURSER_WEBHOOK_MAX_BODY` in bytes; Stripe's events are far smaller. */
  static readonly layer: Layer.Layer<WebhookHttp, Config.ConfigError, Webhooks> = Layer.effect(
    WebhookHttp,
    Effect.gen(function*() {
      const webhooks = yield* Webhooks
      const maxBytes = yield* boundedInt("PURSER_WEBHOOK_MAX_BODY", { minimum: 1024, maximum: 16_777_216, default: 1_048_576 })
      const handle = Effect.gen(function*() {
        const request = yield* HttpServerRequest.HttpServerRequest
        if (request.method !== "POST") return HttpServerResponse.setHeader(reply(405, { error: "only POST is spoken here" }), "allow", "POST")
        const body = yield* readBody(request, maxBytes)
        const { fresh } = yield* webhooks.receive(body, request.headers["stripe-signature"])
        return reply(200, { received: true, duplicate: !fresh })
      }).pipe(
        Effect.catchTags({
          BodyTooLarge: () => Effect.succeed(HttpServerResponse.setHeader(reply(413, { error: "the body is too large" }), "connection", "close")),
          WebhookRefused: (error) =>
            Effect.as(Effect.logWarning(`a webhook call is refused: ${error.message}`), reply(400, { error: error.reason._tag })),
          LedgerError: (error) =>
            Effect.as(Effect.logError(`a webhook event was not kept: ${error.message}`), reply(503, { error: "not kept; send it again" })),
          HttpServerError: () => Effect.succeed(reply(400, { error: "the body could not be read" }))
        })
      )
      return WebhookHttp.of({ handle })
    })
  )

  /** One route of an `HttpRouter`. */
  static readonly layerRoute = (path: `/${string}`): Layer.Layer<never, never, HttpRouter.HttpRouter | WebhookHttp> =>
    HttpRouter.use((router) => Effect.flatMap(WebhookHttp, ({ handle }) => router.add("*", path, handle)))
}
