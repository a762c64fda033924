/** What the servers of all patterns share: limits, the app of a handler, and serving until the scope closes. */
import { ChargeServer, type TransportError, type WireCodec } from "@purser/core"
import { Effect, type Scope } from "effect"
import type { PatternServerOptions } from "../PatternOptions.ts"
import { makeChargeReplies } from "./chargeReplies.ts"
import { millis } from "./patternOptions.ts"
import { type ReplyDesk, serveReplies } from "./replyService.ts"

/** What a pattern adds. */
export interface ChargeServerOptions {
  /** The pattern's name. */
  readonly transport: string
  readonly wire: WireCodec
  readonly label: string
  /** Opens the sockets of one call of `serve`. */
  readonly openDesk: Effect.Effect<ReplyDesk, TransportError, Scope.Scope>
}

/** Builds a server; its sockets are opened when `serve` is called. */
export const makeChargeServer = (options: PatternServerOptions, { label, openDesk, transport, wire }: ChargeServerOptions): ChargeServer["Service"] => {
  const concurrency = options.concurrency ?? 256
  return ChargeServer.of({
    serve: (handler) =>
      Effect.scoped(Effect.gen(function*() {
        return yield* serveReplies(yield* openDesk, makeChargeReplies(handler, wire), {
          label,
          concurrency,
          takenMax: concurrency + (options.waitingMax ?? 4096),
          requestMaxBytes: options.requestMaxBytes ?? 1024 * 1024,
          drainMs: millis(options.drainTimeout ?? "10 seconds"),
          transport,
          bury: options.deadLetters ?? (() => Effect.void)
        })
      }))
  })
}
