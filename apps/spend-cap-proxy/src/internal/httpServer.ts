/**
 * The listening side, on Node's own HTTP server: the native boundary of the proxy.
 *
 * Each request runs in a fiber of its own that does not end when its client leaves. Closing lets what is under way finish,
 * and takes no new connection.
 */
import { Effect, type Scope } from "effect"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import type { Exchange } from "./exchange.ts"

/** How it listens. */
export interface ListenOptions {
  readonly host: string
  readonly port: number
}

/** A client pools connections; an idle one must outlive the client's patience, not the other way round. */
const keepAliveMs = 90_000
/** From the first byte to the last of a request, uploads included. */
const requestMs = 600_000

const listen = (server: Server, { host, port }: ListenOptions) =>
  Effect.callback<number, NodeJS.ErrnoException>((resume) => {
    server.once("error", (error: NodeJS.ErrnoException) => resume(Effect.fail(error)))
    server.listen({ host, port, backlog: 1024 }, () => resume(Effect.succeed((server.address() as AddressInfo).port)))
  })

/** Serves until the scope closes, and answers the port. */
export const serve = (
  options: ListenOptions,
  handle: (exchange: Exchange) => Effect.Effect<void>
): Effect.Effect<number, NodeJS.ErrnoException, Scope.Scope> =>
  Effect.gen(function*() {
    const run = Effect.runForkWith(yield* Effect.context<never>())
    let open = 0
    let onIdle: () => void = () => undefined
    const server = createServer((request, response) => {
      open += 1
      request.on("error", () => undefined)
      response.on("error", () => undefined)
      run(handle({ request, response })).addObserver(() => {
        open -= 1
        if (open === 0) onIdle()
      })
    })
    server.keepAliveTimeout = keepAliveMs
    server.requestTimeout = requestMs
    const idle = Effect.callback<void>((resume) => {
      onIdle = () => resume(Effect.void)
      if (open === 0) onIdle()
    })
    return yield* Effect.acquireRelease(listen(server, options), () =>
      Effect.gen(function*() {
        server.close()
        server.closeIdleConnections()
        yield* idle
        server.closeAllConnections()
      }))
  })
