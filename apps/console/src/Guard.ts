/**
 * What stands before every route: the host that was asked for, and the headers that tell a browser to run nothing but this
 * console's own files, in no other page's frame.
 */
import { answeredWithin, MetricSeries, plainTextProblem, SecretText, Tracing } from "@purser/core"
import { Cause, Duration, Effect, Layer, Metric } from "effect"
import { HttpBody, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiMiddleware } from "effect/http-api"
import { Access } from "./Access.ts"
import { Away, BadRequest, NotAllowed, SignInNeeded } from "./api/ConsoleError.ts"
import { Door, Legible, Visitor } from "./api/Visitor.ts"
import { ConsoleMetrics } from "./ConsoleMetrics.ts"
import { endpointOf } from "./internal/endpoints.ts"

/** The policy of every page: no script and no style but files of this server. */
export const contentSecurityPolicy = [
  "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "font-src 'self'", "connect-src 'self'", "manifest-src 'self'",
  "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"
].join("; ")

const headers = {
  "content-security-policy": contentSecurityPolicy,
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=()"
}

const harden = (response: HttpServerResponse.HttpServerResponse) =>
  HttpServerResponse.setHeaders(
    response,
    // Answers of the API hold a customer's data and are nobody's to keep; files name their own time.
    response.headers["cache-control"] === undefined ? { ...headers, "cache-control": "no-store" } : headers
  )

/** What a failure answers: a request that cannot be read its 400, a path that is not there its 404, a bug of ours nothing but 500. */
const answerOf = (cause: Cause.Cause<HttpServerError.HttpServerError>) =>
  Cause.hasInterruptsOnly(cause)
    ? Effect.failCause(cause as Cause.Cause<never>)
    : Effect.flatMap(HttpServerError.causeResponse(cause), ([response, rest]) =>
      response.status < 500 ? Effect.succeed(response) : Effect.as(Effect.logError("a request of the console failed inside", rest), response))

/** In a span of its endpoint, counted and measured. */
const observed = <R>({ method, url }: HttpServerRequest.HttpServerRequest, answer: Effect.Effect<HttpServerResponse.HttpServerResponse, never, R>) => {
  const endpoint = endpointOf(method, url)
  const counted = MetricSeries.timed(ConsoleMetrics.requestSeconds.of(endpoint), answer).pipe(
    Effect.tap(({ status }) => Metric.update(ConsoleMetrics.requests.of(endpoint, String(status)), 1))
  )
  return Tracing.traced(`Console.${endpoint}`, counted, undefined, ({ status }) => ({ "http.response.status_code": status }))
}

/** Before everything: the host, and the headers on whatever is answered. */
export const guarded = <R>(
  { isHost }: Access["Service"],
  app: Effect.Effect<HttpServerResponse.HttpServerResponse, HttpServerError.HttpServerError, R>
): Effect.Effect<HttpServerResponse.HttpServerResponse, never, R | HttpServerRequest.HttpServerRequest> =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    isHost(request.headers["host"])
      ? observed(request, Effect.map(Effect.catchCause(app, answerOf), harden))
      : Effect.succeed(harden(HttpServerResponse.text("this console is not served under that name", { status: 421 }))))

const reads = new Set(["GET", "HEAD"])

/** A store that has not answered by then is away, also for a connection that was open before. Both are below what the page waits for. */
const patience = { read: Duration.seconds(10), act: Duration.seconds(110) } as const

/** Whatever stranger's text an answer holds, it leaves without secrets: the one place that all of them pass. */
const withoutSecrets = (hide: SecretText["Service"]["hide"]) => (response: HttpServerResponse.HttpServerResponse) => {
  const { body } = response
  if (body._tag !== "Uint8Array") return response
  const text = new TextDecoder().decode(body.body)
  const shown = hide(text)
  return shown === text ? response : HttpServerResponse.setBody(response, HttpBody.text(shown, body.contentType))
}

/** The doors of the API. */
export const layerDoor: Layer.Layer<Door, never, Access | SecretText> = Layer.effect(Door, Effect.gen(function*() {
  const { identify, provesItself } = yield* Access
  const clean = withoutSecrets((yield* SecretText).hide)
  const admit: typeof Door.Service["cookie"] = (httpEffect, { endpoint }) => {
    const isRead = reads.has(endpoint.method)
    const most = isRead ? patience.read : patience.act
    const admitted = Effect.gen(function*() {
      const request = yield* HttpServerRequest.HttpServerRequest
      const visitor = yield* identify(request)
      if (visitor === undefined) return yield* new SignInNeeded({ message: "sign in first" })
      if (!isRead) {
        if (visitor.role !== "operator") return yield* new NotAllowed({ message: "your role only looks" })
        const problem = plainTextProblem(visitor.actor)
        if (problem !== undefined) return yield* new NotAllowed({ message: `the name of who acts ${problem}` })
        if (!provesItself(request, visitor)) return yield* new NotAllowed({ message: "the request does not come from this console's own page" })
      }
      return clean(yield* Effect.provideService(httpEffect, Visitor, visitor))
    })
    return Effect.flatMap(answeredWithin(admitted, most), (answer) =>
      answer === undefined
        ? Effect.fail(new Away({ message: `no answer within ${Duration.format(most)}: ${isRead ? "the ledger is away" : "the trail and the story say whether it was done"}` }))
        : Effect.succeed(answer))
  }
  return Door.of({ cookie: admit, bearer: admit })
}))

/** What is wrong with a request. An answer of ours that does not fit is not the asker's mistake. */
export const layerLegible: Layer.Layer<Legible> = HttpApiMiddleware.layerSchemaErrorTransform(Legible, (error, { group }) => {
  if (error.kind === "Body" || error.kind === "ResponseHeaders") return Effect.fail(error)
  const where = error.kind.toLowerCase()
  // What a sign-in brings is not repeated to anybody.
  return Effect.fail(new BadRequest({ message: group.identifier === "signIn" ? `the ${where} cannot be read` : `the ${where} cannot be read: ${error.cause.message}`.slice(0, 1000) }))
})
