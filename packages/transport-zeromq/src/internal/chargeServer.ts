/** A charge server on any pattern's sockets. */
import { ChargeServer, type WireCodec } from "@purser/core"
import type { PatternServerOptions } from "../PatternOptions.ts"
import { makeChargeReplies } from "./chargeReplies.ts"
import { serveApp, type ServerPlace } from "./replyServer.ts"

/** What a pattern adds. */
export interface ChargeServerOptions extends ServerPlace {
  readonly wire: WireCodec
}

/** Builds a server; its sockets are opened when `serve` is called. */
export const makeChargeServer = (options: PatternServerOptions, { wire, ...place }: ChargeServerOptions): ChargeServer["Service"] =>
  ChargeServer.of({ serve: (handler) => serveApp(options, place, makeChargeReplies(handler, wire)) })
