/** The typed client of the console's API, for the page itself and for programs. It imports nothing of a server. */
import { Context, type Effect, Layer, Redacted } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import { HttpApiClient } from "effect/http-api"
import { ConsoleApi } from "./api/ConsoleApi.ts"
import { actorHeader, csrfHeader } from "./api/Visitor.ts"

/** Where the console is, and how to come in. */
export interface ConsoleClientOptions {
  /** The console's address, for example `http://127.0.0.1:4280`. */
  readonly url: string
  /** A program's way in. */
  readonly token?: Redacted.Redacted | undefined
  /** Who acts, beside a token. */
  readonly actor?: string | undefined
  /** The page's way to act: the proof that its session told. Asked for with each call. */
  readonly csrf?: (() => string | null) | undefined
}

const withHeaders = (options: ConsoleClientOptions) => (request: HttpClientRequest.HttpClientRequest) => {
  const csrf = options.csrf?.() ?? null
  return HttpClientRequest.setHeaders(request, {
    ...(options.token === undefined ? {} : { authorization: `Bearer ${Redacted.value(options.token)}` }),
    ...(options.actor === undefined ? {} : { [actorHeader]: options.actor }),
    ...(csrf === null ? {} : { [csrfHeader]: csrf })
  })
}

const make = (options: ConsoleClientOptions) =>
  HttpApiClient.make(ConsoleApi, {
    baseUrl: options.url.replace(/\/$/, ""),
    transformClient: HttpClient.mapRequest(withHeaders(options))
  })

/** The client: a method for every endpoint, by group. */
export class ConsoleClient extends Context.Service<ConsoleClient, HttpApiClient.ForApi<typeof ConsoleApi>>()("@purser/console/ConsoleClient") {
  /** Over the platform's `fetch`. */
  static readonly layer = (options: ConsoleClientOptions): Layer.Layer<ConsoleClient> =>
    Layer.effect(ConsoleClient, make(options)).pipe(Layer.provide(FetchHttpClient.layer))

  /** Over the program's own HTTP client. */
  static readonly layerWith = (options: ConsoleClientOptions): Layer.Layer<ConsoleClient, never, HttpClient.HttpClient> => Layer.effect(ConsoleClient, make(options))
}

/** For programs that build their own layers. */
export const makeConsoleClient: (options: ConsoleClientOptions) => Effect.Effect<ConsoleClient["Service"], never, HttpClient.HttpClient> = make
