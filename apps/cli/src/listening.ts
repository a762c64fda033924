/** Servers of the command: a place where none can listen is refused in words, with the address and the system's reason. */
import { NodeHttpServer } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import type { HttpServerError } from "effect/http"
import { createServer } from "node:http"
import { refused } from "./CommandFailed.ts"

/** Where one listens. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
}

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program listens there",
  EADDRNOTAVAIL: "this machine has no such address",
  EACCES: "this user may not listen there",
  ENOTFOUND: "nobody knows this name"
}

const codeOf = (cause: unknown) => typeof cause === "string" ? cause : typeof cause === "object" && cause !== null && "code" in cause && typeof cause.code === "string" ? cause.code : undefined

/** Why `what` cannot listen there: the system's error, or its code. */
export const listenRefused = (what: string, { host, port }: ListenAddress, cause: unknown) => {
  const code = codeOf(cause)
  const reason = code === undefined ? cause instanceof Error ? cause.message : String(cause) : `${reasons[code] ?? "the system does not let it"} (${code})`
  return refused(`${what} cannot listen on ${host.includes(":") ? `[${host}]` : host}:${port}: ${reason}`)
}

/** A layer that listens, with its failure in words. */
export const orRefused = (what: string, address: ListenAddress) => <A, E, R>(layer: Layer.Layer<A, E | HttpServerError.ServeError, R>) =>
  Layer.catchTag(layer, "ServeError", (error) => Layer.effectContext(Effect.fail(listenRefused(what, address, (error as HttpServerError.ServeError).cause))))

/** A server on this address. */
export const layerListening = (what: string, address: ListenAddress) => orRefused(what, address)(NodeHttpServer.layer(() => createServer(), address))
