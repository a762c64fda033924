/** What the servers of all patterns share: limits, and serving an app until the scope closes. */
import type { TransportError } from "@purser/core"
import { Effect, type Scope } from "effect"
import type { PatternServerOptions } from "../PatternOptions.ts"
import { millis } from "./patternOptions.ts"
import type { ReplyApp } from "./replyApp.ts"
import { type ReplyDesk, serveReplies } from "./replyService.ts"

/** Where a pattern's server works. */
export interface ServerPlace {
  /** The pattern's name. */
  readonly transport: string
  readonly label: string
  /** Opens the sockets of one call of `serve`. */
  readonly openDesk: Effect.Effect<ReplyDesk, TransportError, Scope.Scope>
}

/** Serves an app until interrupted. */
export const serveApp = <Req, Reply, A, E>(options: PatternServerOptions, { label, openDesk, transport }: ServerPlace, app: ReplyApp<Req, Reply, A, E>) => {
  const concurrency = options.concurrency ?? 256
  return Effect.scoped(Effect.flatMap(openDesk, (desk) =>
    serveReplies(desk, app, {
      label,
      concurrency,
      takenMax: concurrency + (options.waitingMax ?? 4096),
      requestMaxBytes: options.requestMaxBytes ?? 1024 * 1024,
      drainMs: millis(options.drainTimeout ?? "10 seconds"),
      transport,
      bury: options.deadLetters ?? (() => Effect.void)
    })))
}
