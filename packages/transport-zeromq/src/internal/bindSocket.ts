/**
 * Binding, where an address may still be with somebody: it is asked for again for a while, since who is restarted leaves it
 * a moment late.
 *
 * libzmq removes whatever stands at an ipc address before it binds: who was there would live on, and nobody would reach it any more. So
 * an address at which somebody answers is taken, as it is with tcp.
 */
import type { TransportError } from "@purser/core"
import { Effect, Schedule } from "effect"
import { connect } from "node:net"
import type { Socket } from "zeromq"
import type { SocketSettings } from "../SocketSettings.ts"
import { NativeError, nativeError, openError } from "./native.ts"

/** The file of an ipc address; undefined for a name that libzmq makes itself, and for one without a file. */
const fileOf = (address: string): string | undefined => /^ipc:\/\/(?![*@])(.+)$/.exec(address)?.[1]

const isAnswered = (path: string): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    const socket = connect(path)
    socket.once("connect", () => {
      socket.destroy()
      resume(Effect.succeed(true))
    })
    // Somebody who is busy is there too.
    socket.once("error", (error: NodeJS.ErrnoException) => resume(Effect.succeed(error.code === "EAGAIN")))
    return Effect.sync(() => socket.destroy())
  })

const isFree = (address: string): Effect.Effect<void, NativeError> => {
  const path = fileOf(address)
  return path === undefined ? Effect.void : Effect.flatMap(isAnswered(path), (taken) => taken ? Effect.fail(new NativeError({ code: "EADDRINUSE" })) : Effect.void)
}

/** Binding has no EAGAIN of its own: it is what another thread of libzmq has left where the addon looks for the reason, which is an address that is taken. */
const bindError = (error: unknown): NativeError => {
  const found = nativeError(error)
  return found.code === "EAGAIN" ? new NativeError({ code: "EADDRINUSE" }) : found
}

/** Binds an address, and gives it as it was bound: with the port that a wildcard got. */
export const bindSocket = (socket: Socket, address: string, { bindWaitMs }: SocketSettings): Effect.Effect<string, TransportError> =>
  isFree(address).pipe(
    Effect.andThen(Effect.tryPromise({ try: () => socket.bind(address), catch: bindError })),
    Effect.retry({ while: ({ code }) => code === "EADDRINUSE", schedule: Schedule.spaced(50).pipe(Schedule.upTo({ duration: bindWaitMs })) }),
    Effect.mapBoth({ onFailure: (error) => openError(error, address), onSuccess: () => socket.lastEndpoint ?? address })
  )
