/**
 * A fleet's sender written with pyzmq (`peers/plain.py`): the program itself where Python has pyzmq, and its recorded frames
 * everywhere. The recordings are held to the program wherever it can run.
 */
import { Effect, Schedule } from "effect"
import { spawn, spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import * as zmq from "zeromq"
import { bare, receive, send } from "./sockets.ts"

/** Patterns that the program speaks. */
export const patterns = ["req-rep", "router-dealer", "push-pull", "majordomo", "pub-sub"] as const
export type Pattern = typeof patterns[number]

/** Where to. */
export interface Addresses {
  readonly endpoint: string
  readonly ackEndpoint: string
}

/** Frames in the order in which they went over the wire, in hex. */
export interface Conversation {
  readonly sent: ReadonlyArray<ReadonlyArray<string>>
  readonly received: ReadonlyArray<ReadonlyArray<string>>
}

const path = (name: string) => new URL(`../${name}`, import.meta.url).pathname

/** The Python that has pyzmq, if any: Debian's own, then the first of the path. */
export const python = ["/usr/bin/python3", "python3"].find((command) => spawnSync(command, ["-c", "import zmq"], { stdio: "ignore" }).status === 0)

/** What a recording holds. */
export const recordingOf = (pattern: Pattern): ReadonlyArray<ReadonlyArray<string>> => JSON.parse(readFileSync(path(`fixtures/${pattern}.json`), "utf8")).sent

/** The customers that the recordings bill: one of plain ASCII, one whose name JSON may escape. */
export const customers = ["cust_123", "Ünlü & Söhne"] as const

/** Runs the program. */
export const live = (command: string, pattern: Pattern, { ackEndpoint, endpoint }: Addresses): Effect.Effect<Conversation> =>
  Effect.callback((resume) => {
    const child = spawn(command, [path("peers/plain.py"), pattern, endpoint, ackEndpoint, ...customers], { stdio: ["ignore", "pipe", "pipe"] })
    let out = ""
    let err = ""
    child.stdout.on("data", (chunk) => out += chunk)
    child.stderr.on("data", (chunk) => err += chunk)
    child.on("close", (code) => {
      if (code !== 0) return resume(Effect.die(new Error(`plain.py ended with ${code}: ${err}`)))
      const lines = out.trim().split("\n").map((line) => JSON.parse(line) as [string, ReadonlyArray<string>])
      const of = (direction: string) => lines.filter(([kind]) => kind === direction).map(([, frames]) => frames)
      resume(Effect.succeed({ sent: of("sent"), received: of("received") }))
    })
    return Effect.sync(() => child.kill("SIGKILL"))
  })

/** A socket that was closed a moment ago holds its address a little longer. */
const bindAgain = (socket: zmq.Pull, address: string) =>
  Effect.tryPromise(() => socket.bind(address)).pipe(Effect.retry(Schedule.spaced("20 millis").pipe(Schedule.upTo({ times: 500 }))), Effect.orDie)

/** Sends the recorded frames over bare sockets and takes as many answers. */
export const replay = (pattern: Pattern, { ackEndpoint, endpoint }: Addresses): Effect.Effect<Conversation> =>
  Effect.scoped(Effect.gen(function*() {
    const sent = recordingOf(pattern)
    const messages = sent.map((frames) => frames.map((frame) => Buffer.from(frame, "hex")))
    const received: Array<ReadonlyArray<string>> = []
    const take = (socket: Parameters<typeof receive>[0]) =>
      Effect.map(receive(socket), (frames) => void received.push(frames.map((frame) => Buffer.from(frame).toString("hex"))))
    switch (pattern) {
      case "req-rep": {
        const socket = yield* bare(() => new zmq.Request({ linger: 0 }))
        socket.connect(endpoint)
        for (const frames of messages) yield* Effect.andThen(send(socket, ...frames), take(socket))
        break
      }
      case "majordomo":
      case "router-dealer": {
        const socket = yield* bare(() => new zmq.Dealer({ linger: 0 }))
        socket.connect(endpoint)
        for (const frames of messages) yield* send(socket, ...frames)
        for (const _ of messages) yield* take(socket)
        break
      }
      case "pub-sub": {
        const acks = yield* bare(() => new zmq.Pull({ linger: 0 }))
        yield* bindAgain(acks, ackEndpoint)
        const socket = yield* bare(() => new zmq.XPublisher({ linger: 0 }))
        socket.connect(endpoint)
        yield* receive(socket)
        for (const frames of messages) yield* send(socket, ...frames)
        for (const _ of messages) yield* take(acks)
        break
      }
      case "push-pull": {
        const acks = yield* bare(() => new zmq.Pull({ linger: 0 }))
        yield* bindAgain(acks, ackEndpoint)
        const socket = yield* bare(() => new zmq.Push({ linger: 0 }))
        socket.connect(endpoint)
        for (const frames of messages) yield* send(socket, ...frames)
        for (const _ of messages) yield* take(acks)
      }
    }
    return { sent, received }
  }))
