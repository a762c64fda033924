/** A TCP proxy on loopback that a test cuts and mends: what was connected is reset, and who comes anew is turned away. */
import { Effect } from "effect"
import { connect, createServer, type AddressInfo, type Socket } from "node:net"

/** A proxy that runs. */
export interface Proxy {
  readonly port: number
  /** Resets every connection and turns new ones away. */
  readonly cut: Effect.Effect<void>
  /** Lets connections through again. */
  readonly mend: Effect.Effect<void>
  /** Resets every connection; who comes anew is let through. */
  readonly reset: Effect.Effect<void>
  /** Leads to another port from now on; what is connected is reset. */
  readonly moveTo: (port: number) => Effect.Effect<void>
  /** Waits until this many connections were turned away since the cut. */
  readonly turnedAway: (count: number) => Effect.Effect<void>
}

/** A port that is free now. */
export const freePort = Effect.callback<number>((resume) => {
  const server = createServer()
  server.listen(0, "127.0.0.1", () => {
    const { port } = server.address() as AddressInfo
    server.close(() => resume(Effect.succeed(port)))
  })
})

/** A proxy in front of a port on loopback; it is closed with the scope. */
export const proxyTo = (target: number) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly proxy: Proxy; readonly close: () => void }>((resume) => {
      const sockets = new Set<Socket>()
      let isCut = false
      let to = target
      let refused = 0
      const keep = (socket: Socket, other: () => Socket) => {
        sockets.add(socket)
        socket.on("error", () => undefined)
        socket.on("close", () => {
          sockets.delete(socket)
          other().destroy()
        })
      }
      const server = createServer((client) => {
        if (isCut) {
          refused += 1
          client.on("error", () => undefined)
          client.resetAndDestroy()
          return
        }
        const upstream = connect(to, "127.0.0.1")
        keep(client, () => upstream)
        keep(upstream, () => client)
        client.pipe(upstream)
        upstream.pipe(client)
      })
      const resetAll = () => {
        for (const socket of sockets) socket.resetAndDestroy()
      }
      const turnedAway = (count: number): Effect.Effect<void> =>
        Effect.suspend(() => refused >= count ? Effect.void : Effect.andThen(Effect.sleep(5), turnedAway(count)))
      server.listen(0, "127.0.0.1", () => {
        resume(Effect.succeed({
          proxy: {
            port: (server.address() as AddressInfo).port,
            cut: Effect.sync(() => {
              isCut = true
              refused = 0
              resetAll()
            }),
            mend: Effect.sync(() => {
              isCut = false
            }),
            reset: Effect.sync(resetAll),
            moveTo: (port) => Effect.sync(() => {
              to = port
              resetAll()
            }),
            turnedAway
          },
          close: () => {
            server.close()
            resetAll()
          }
        }))
      })
    }),
    ({ close }) => Effect.sync(close)
  ).pipe(Effect.map(({ proxy }) => proxy))
