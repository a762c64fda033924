import { assert, describe, it } from "@effect/vitest"
import { defaultSocketSettings, openZmqSocket, parseEndpoint, type ZmqSocketOptions } from "@purser/transport-zeromq"
import { Effect, Queue, Result } from "effect"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import * as zmq from "zeromq"

setFlagsFromString("--expose-gc")
const collectGarbage: () => void = runInNewContext("gc")

const open = (kind: ZmqSocketOptions["kind"], attach: "bind" | "connect", address: string, lingerMs: number) =>
  openZmqSocket(zmq, {
    kind,
    endpoints: [Result.getOrThrow(parseEndpoint(address, { attach, allowPlain: false }))],
    settings: { ...defaultSocketSettings, reconnectMs: 1, reconnectMaxMs: 1 },
    sendTimeoutMs: 0,
    lingerMs
  })

describe("the observer of a socket", () => {
  // libzmq has one thread for the connections of all sockets. It waits for ever to tell an event that nobody takes.
  it.live("outlives the socket, whose connection has events for as long as it lingers", () =>
    Effect.gen(function*() {
      for (let round = 0; round < 5; round++) {
        yield* Effect.scoped(Effect.gen(function*() {
          const push = yield* open("push", "connect", "tcp://127.0.0.1:9", 200)
          yield* push.send(["nobody is there to take it"])
        }))
        collectGarbage()
        yield* Effect.yieldNow
        collectGarbage()
        const router = yield* open("router", "bind", "tcp://127.0.0.1:*", 0)
        const dealer = yield* open("dealer", "connect", router.bound[0]!, 0)
        yield* dealer.send([`round ${round}`])
        assert.strictEqual(String((yield* Queue.take(router.incoming))[1]), `round ${round}`)
      }
    }), 60_000)
})
