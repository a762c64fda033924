/**
 * A ROUTER that serves REQ and DEALER peers alike. A request under an empty delimiter may come from a REQ socket, which
 * takes one answer for each message; without one, each answer of a joined frame leaves as soon as it is there.
 */
import type { ChargeServer, TransportError } from "@purser/core"
import { type Config, Effect } from "effect"
import type { PatternServerOptions } from "../PatternOptions.ts"
import type { AnnouncedAddresses } from "./addresses.ts"
import { makeChargeServer } from "./chargeServer.ts"
import type { Frames } from "../ZmqSocket.ts"
import { makeEar } from "./ear.ts"
import { openEnvelope } from "./envelope.ts"
import { loadZeromq } from "./native.ts"
import { labelOf, readEndpoints, settingsOf, wireOf } from "./patternOptions.ts"
import type { ServerPlace } from "./replyServer.ts"
import type { Arrival } from "./replyService.ts"
import { openServerSocket } from "./serverSocket.ts"

/** What it takes beside the common settings. */
export interface RouterServerOptions extends PatternServerOptions {
  /** The pattern's name. */
  readonly transport: string
  /** Whether a peer takes over the routing id of another one that is connected (true), or is refused. */
  readonly handover?: boolean | undefined
}

/** Reads the settings; the socket is opened when a server begins. */
export const openRouterPlace = Effect.fnUntraced(function*(
  options: RouterServerOptions,
  announced?: AnnouncedAddresses
): Effect.fn.Return<ServerPlace, TransportError> {
  const endpoints = yield* readEndpoints(options, "bind")
  // A server that connects has no client at the other end, but a forwarder.
  const behindForwarder = endpoints.every(({ attach }) => attach === "connect")
  const settings = settingsOf(options)
  const zmq = yield* loadZeromq
  return {
    transport: options.transport,
    label: labelOf(endpoints),
    openDesk: Effect.suspend(() => {
      const ear = makeEar()
      return Effect.map(openServerSocket(zmq, { kind: "router", endpoints, settings, announced, handover: options.handover, hear: ear.hear }), (socket) => {
        const open = (frames: Frames): Arrival => {
          const { envelope, payload } = openEnvelope(frames, behindForwarder)
          const whole = envelope[envelope.length - 1]?.length === 0
          return {
            _tag: "Arrival",
            payload,
            back: {
              // What is answered as a whole shares no frame, and needs no key.
              key: whole ? "" : envelope.length === 1 ? `=${envelope[0]!.toString("latin1")}` : envelope.map((frame) => frame.toString("hex")).join("."),
              whole,
              send: (text) => socket.send([...envelope, text]),
              post: (text, posted) => {
                socket.post([...envelope, text], posted)
                return true
              }
            }
          }
        }
        return {
          incoming: socket.incoming,
          flush: socket.flush,
          open: (frames) => Effect.sync(() => open(frames)),
          direct: { listen: ear.listen, open }
        }
      })
    })
  }
})

/** Makes the server of charges. */
export const makeRouterServer = Effect.fnUntraced(function*(
  options: RouterServerOptions,
  announced?: AnnouncedAddresses
): Effect.fn.Return<ChargeServer["Service"], TransportError | Config.ConfigError> {
  return makeChargeServer(options, { ...(yield* openRouterPlace(options, announced)), wire: yield* wireOf(options) })
})
