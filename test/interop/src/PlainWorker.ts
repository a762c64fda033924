/** A fleet's worker: `peers/worker.py` where Python has pyzmq, else bare sockets that do the same. */
import { Effect, type Scope } from "effect"
import { spawn } from "node:child_process"
import * as zmq from "zeromq"
import { type Addresses, type Pattern, python } from "./PyzmqPeer.ts"
import { bare, receive, send } from "./sockets.ts"

/** Requests as the worker read them, once it has answered all. */
export type Seen = Effect.Effect<ReadonlyArray<Readonly<Record<string, unknown>>>>

const program = (command: string, pattern: Pattern, { ackEndpoint, endpoint }: Addresses, count: number): Effect.Effect<Seen, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(command, [new URL("../peers/worker.py", import.meta.url).pathname, pattern, endpoint, ackEndpoint, String(count)], { stdio: ["ignore", "pipe", "inherit"] })
      let out = ""
      child.stdout.on("data", (chunk) => out += chunk)
      const ended = new Promise<string>((resolve) => child.on("close", () => resolve(out)))
      return { child, ended }
    }),
    ({ child }) => Effect.sync(() => void child.kill("SIGKILL"))
  ).pipe(Effect.map(({ ended }) => Effect.map(Effect.promise(() => ended), (text) => text.trim().split("\n").map((line) => JSON.parse(line)))))

const sockets = Effect.fnUntraced(function*(pattern: Pattern, { ackEndpoint, endpoint }: Addresses, count: number): Effect.fn.Return<Seen, never, Scope.Scope> {
  const seen: Array<Readonly<Record<string, unknown>>> = []
  const charge = (body: Uint8Array | undefined) => {
    const request = JSON.parse(String(body))
    seen.push(request)
    return { request, reply: { status: "ok", charge_id: `ch_${request.customer_id}` } }
  }
  const answerEach = (answer: Effect.Effect<void>) => Effect.forkScoped(Effect.as(Effect.repeat(answer, { times: count - 1 }), seen))
  switch (pattern) {
    case "req-rep": {
      const socket = yield* bare(() => new zmq.Reply({ linger: 1000 }))
      yield* Effect.promise(() => socket.bind(endpoint))
      const fiber = yield* answerEach(Effect.flatMap(receive(socket), ([body]) => send(socket, JSON.stringify(charge(body).reply))))
      return Effect.promise(() => new Promise((resolve) => fiber.addObserver(() => resolve(seen))))
    }
    case "router-dealer": {
      const socket = yield* bare(() => new zmq.Router({ linger: 1000 }))
      yield* Effect.promise(() => socket.bind(endpoint))
      const fiber = yield* answerEach(Effect.flatMap(receive(socket), ([client, body]) => {
        const { reply, request } = charge(body)
        return send(socket, client!, JSON.stringify({ ...reply, ack_seq: request.seq }))
      }))
      return Effect.promise(() => new Promise((resolve) => fiber.addObserver(() => resolve(seen))))
    }
    case "majordomo": {
      const socket = yield* bare(() => new zmq.Dealer({ linger: 1000 }))
      socket.connect(endpoint)
      yield* send(socket, "MDPW02", "\u0001", "charge")
      // A broker's heartbeats come between.
      const request = Effect.repeat(receive(socket), { until: (frames) => frames[1]?.[0] === 2 })
      const fiber = yield* answerEach(Effect.flatMap(request, (frames) => {
        const { reply, request } = charge(frames[4])
        return send(socket, "MDPW02", "\u0004", frames[2]!, "", JSON.stringify({ ...reply, ack_seq: request.seq }))
      }))
      return Effect.promise(() => new Promise((resolve) => fiber.addObserver(() => resolve(seen))))
    }
    case "pub-sub":
      return yield* Effect.die("a fleet's own worker on pub-sub is none of ours")
    case "push-pull": {
      const socket = yield* bare(() => new zmq.Pull({ linger: 0 }))
      yield* Effect.promise(() => socket.bind(endpoint))
      const acks = yield* bare(() => new zmq.Push({ linger: 1000 }))
      acks.connect(ackEndpoint)
      const fiber = yield* answerEach(Effect.flatMap(receive(socket), ([body]) => {
        const { reply, request } = charge(body)
        return send(acks, JSON.stringify({ ...reply, ack_seq: request.seq }))
      }))
      return Effect.promise(() => new Promise((resolve) => fiber.addObserver(() => resolve(seen))))
    }
  }
})

/** Starts a worker that answers so many requests. */
export const plainWorker = (pattern: Pattern, addresses: Addresses, count: number, withPython: boolean): Effect.Effect<Seen, never, Scope.Scope> =>
  withPython && python !== undefined ? program(python, pattern, addresses, count) : sockets(pattern, addresses, count)
