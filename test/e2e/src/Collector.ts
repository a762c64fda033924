/** An OpenTelemetry collector that keeps what it is sent, as JSON over HTTP. */
import { Effect, Schema } from "effect"
import { createServer, type IncomingMessage } from "node:http"
import { buffer } from "node:stream/consumers"
import { gunzipSync } from "node:zlib"

const Attribute = Schema.Struct({ key: Schema.String, value: Schema.Record(Schema.String, Schema.Unknown) })
const Span = Schema.Struct({
  traceId: Schema.String,
  spanId: Schema.String,
  parentSpanId: Schema.optionalKey(Schema.String),
  name: Schema.String,
  kind: Schema.Int,
  attributes: Schema.Array(Attribute),
  links: Schema.Array(Schema.Struct({ traceId: Schema.String }))
})
const Traces = Schema.fromJsonString(Schema.Struct({
  resourceSpans: Schema.Array(Schema.Struct({
    resource: Schema.Struct({ attributes: Schema.Array(Attribute) }),
    scopeSpans: Schema.Array(Schema.Struct({ spans: Schema.Array(Span) }))
  }))
}))
const decodeTraces = Schema.decodeUnknownSync(Traces)

/** One span, with the service that sent it. */
export interface KeptSpan extends Omit<typeof Span.Type, "attributes"> {
  readonly service: string
  readonly attributes: Readonly<Record<string, unknown>>
}

const valuesOf = (attributes: ReadonlyArray<typeof Attribute.Type>) => Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

const spansOf = (text: string): ReadonlyArray<KeptSpan> =>
  decodeTraces(text).resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) => spans.map((span) => ({
      ...span,
      service: String(valuesOf(resource.attributes)["service.name"]),
      attributes: valuesOf(span.attributes)
    }))))

const textOf = async (request: IncomingMessage) => {
  const body = await buffer(request)
  return (request.headers["content-encoding"] === "gzip" ? gunzipSync(body) : body).toString("utf8")
}

/** A collector until the scope ends. */
export const collector = Effect.gen(function*() {
  const bodies: Array<{ readonly path: string; readonly text: string; readonly authorization: string | undefined }> = []
  const server = yield* Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const made = createServer((request, response) => {
        void textOf(request).then((text) => {
          bodies.push({ path: request.url ?? "", text, authorization: request.headers.authorization })
          response.end("{}")
        })
      })
      made.listen(0, "127.0.0.1", () => resume(Effect.succeed(made)))
    }),
    (made) => Effect.sync(() => {
      made.closeAllConnections()
      made.close()
    })
  )
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    /** What came so far, in full. */
    all: Effect.sync(() => [...bodies]),
    spans: Effect.sync(() => bodies.filter(({ path }) => path === "/v1/traces").flatMap(({ text }) => spansOf(text)))
  }
})
