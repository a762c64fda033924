/** `purser console`: serves until stopped. */
import { Console, consoleSettings, type ConsoleFlags, layerConsole } from "@purser/console"
import { Database } from "@purser/postgres"
import { Telemetry } from "@purser/purser"
import { Effect, Layer } from "effect"
import { HttpServer } from "effect/http"
import { serving } from "../launch.ts"
import { orRefused } from "../listening.ts"
import { note, out } from "../ui/Output.ts"

/** Serves the page and its API over the configured stores. */
export const serveConsole = (flags: ConsoleFlags) =>
  Effect.gen(function*() {
    const { access, host, port } = yield* consoleSettings(flags)
    return yield* Effect.gen(function*() {
      const server = yield* HttpServer.HttpServer
      const { kind, label } = yield* Database
      yield* out(`console on ${HttpServer.formatAddress(server.address)}, ledger ${label}`)
      if (kind === "pglite") yield* note("The embedded database serves this process alone: to watch other processes, set PURSER_DATABASE_URL.")
      yield* Telemetry.watchStores
      return yield* serving(Effect.never)
    }).pipe(Effect.scoped, Effect.provide(Console.layerServer({ host, port }).pipe(orRefused("purser console", { host, port }), Layer.provideMerge(layerConsole(access)))))
  })
