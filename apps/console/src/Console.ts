/**
 * The console: its API, its page, and the page about its API, behind one door. It listens by itself, or is mounted in a
 * program's own server under a path.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import type { SecretText } from "@purser/core"
import type { StoreServices } from "@purser/purser"
import type { DatabaseServices } from "@purser/postgres"
import { Context, Effect, Layer, type Scope } from "effect"
import { HttpEffect, HttpRouter, HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder, OpenApi } from "effect/http-api"
import { createServer } from "node:http"
import { Access } from "./Access.ts"
import { ConsoleApi } from "./api/ConsoleApi.ts"
import type { ConsoleStoreServices } from "./ConsoleStores.ts"
import * as Guard from "./Guard.ts"
import { apiPage, apiStyle } from "./internal/apiPage.ts"
import * as Attention from "./internal/handlers/attention.ts"
import * as Caps from "./internal/handlers/caps.ts"
import * as Charges from "./internal/handlers/charges.ts"
import * as Reconcile from "./internal/handlers/reconcile.ts"
import * as Runs from "./internal/handlers/runs.ts"
import * as Session from "./internal/handlers/session.ts"
import * as Workers from "./internal/handlers/workers.ts"
import { LiveFeed } from "./LiveFeed.ts"
import { type PageMissing, WebFiles } from "./WebFiles.ts"

/** What every console stands on; a `ProcessorDesk` and a `VaultRoom` beside it open more. */
export type ConsoleNeeds = Access | SecretText | ConsoleStoreServices | StoreServices | DatabaseServices

const Api = HttpApiBuilder.layer(ConsoleApi, { openapiPath: "/openapi.json" }).pipe(
  Layer.provide(Layer.mergeAll(Session.layer, Runs.layer, Charges.layer, Attention.layer, Caps.layer, Workers.layer, Reconcile.layer)),
  Layer.provide([Guard.layerDoor, Guard.layerLegible])
)

const missing = HttpServerResponse.text("there is no such page", { status: 404 })

const Page = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const { file } = yield* WebFiles
  const docs = HttpServerResponse.text(apiPage(OpenApi.fromApi(ConsoleApi)), { contentType: "text/html; charset=utf-8" })
  yield* router.add("GET", "/docs", Effect.succeed(docs))
  yield* router.add("GET", "/docs.css", Effect.succeed(HttpServerResponse.text(apiStyle, { contentType: "text/css; charset=utf-8" })))
  yield* router.add("GET", "/*", Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ url }) => {
    const path = url.split("?")[0]!.replace(/^\//, "")
    return Effect.map(file(path === "" ? "index.html" : path), (found) => found ?? missing)
  }))
}))

const routes = Layer.mergeAll(Api, Page)

/** An answer to the request at hand. */
export type Handle = Effect.Effect<HttpServerResponse.HttpServerResponse, never, HttpServerRequest.HttpServerRequest | Scope.Scope>

/** The console as something that answers requests. */
export class Console extends Context.Service<Console, {
  /** Answers by the path of the request. */
  readonly handle: Handle
  /** Answers for requests under a path, for example `/purser`; the bare path is sent to the one with a slash, and any other is not there. */
  readonly handleUnder: (path: string) => Handle
  /** Lets go of those who follow what moves: to be called when the server begins to close. */
  readonly close: Effect.Effect<void>
}>()("@purser/console/Console") {
  /** Behind the doors that `Access` says. */
  static readonly layer: Layer.Layer<Console, PageMissing, ConsoleNeeds> = Layer.effect(
    Console,
    Effect.gen(function*() {
      const { end } = yield* LiveFeed
      const handle = Guard.guarded(yield* Access, yield* HttpRouter.toHttpEffect(routes))
      return Console.of({
        handle,
        close: end,
        handleUnder: (path) =>
          Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
            const rest = request.url.slice(path.length)
            if (!request.url.startsWith(path) || !/^(?:$|[/?])/.test(rest)) return Effect.succeed(missing)
            if (rest === "" || rest.startsWith("?")) return Effect.succeed(HttpServerResponse.redirect(`${path}/`, { status: 308 }))
            return Effect.provideService(handle, HttpServerRequest.HttpServerRequest, request.modify({ url: rest }))
          })
      })
    })
  ).pipe(Layer.provide([WebFiles.layer, LiveFeed.layer]), Layer.provide(HttpServer.layerServices))

  /** Listens on a port of its own, until the scope closes. */
  static readonly layerServer = (options: { readonly host: string; readonly port: number }) =>
    Layer.unwrap(Effect.map(Console, ({ close, handle }) =>
      // What is built last goes first: then the server waits for acts alone.
      Layer.effectDiscard(Effect.addFinalizer(() => close)).pipe(Layer.provideMerge(HttpServer.serve(handle))))).pipe(
      Layer.provideMerge(NodeHttpServer.layer(() => createServer(), options))
    )

  /** A part of a program's own router, under a path. */
  static readonly layerRoute = (path: `/${string}`): Layer.Layer<never, never, HttpRouter.HttpRouter | Console> =>
    HttpRouter.use((router) =>
      // The router takes the bare path for one of these.
      Effect.flatMap(Console, ({ handleUnder }) => router.add("*", `${path}/*`, handleUnder(path))))

  /** For servers that speak `Request` and `Response`. */
  static readonly webHandler = (path: string): Effect.Effect<(request: Request) => Promise<Response>, never, Console> =>
    Effect.map(Console, ({ handle, handleUnder }) => {
      const answer = HttpEffect.toWebHandler(path === "" || path === "/" ? handle : handleUnder(path))
      return (request) => answer(request)
    })
}
