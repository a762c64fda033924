import { assert, describe, it } from "@effect/vitest"
import { ChargeClient } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { ZmqTransport } from "@purser/transport-zeromq"
import { Context, Effect, Fiber, Layer, Ref, Schedule } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { freeAddress, paid } from "./support.ts"

const program = fileURLToPath(new URL("programs/server.ts", import.meta.url))
const kill = (child: ChildProcess) => Effect.sync(() => void child.kill("SIGKILL"))

const clients = {
  "req-rep": ZmqTransport.layerReqRepClient,
  "router-dealer": ZmqTransport.layerRouterDealerClient,
  "push-pull": ZmqTransport.layerPushPullClient
} as const

describe("a server process that is killed in mid-run", () => {
  for (const [pattern, layer] of Object.entries(clients)) {
    it.live(`loses no request of its client: ${pattern}`, () =>
      Effect.gen(function*() {
        const endpoint = yield* freeAddress
        const start = Effect.acquireRelease(Effect.sync(() => spawn(process.execPath, [program, pattern, endpoint], { stdio: "ignore" })), kill)
        const client = Context.get(
          yield* Layer.build(layer({ endpoint, window: 64, joinMax: 8, requestTimeout: "400 millis", retry: Schedule.spaced("20 millis"), socket: { reconnectMs: 20, reconnectMaxMs: 50 } })),
          ChargeClient
        )
        const answered = yield* Ref.make(0)
        const requests = Array.from({ length: 600 }, (_, index) => chargeFor(`c_${index}`, "2026-07", { amountMinor: 1000 + index }))
        const submitted = yield* Effect.forkChild(
          Effect.forEach(requests, (request) => Effect.tap(client.submit(request), () => Ref.update(answered, (n) => n + 1)), { concurrency: "unbounded" })
        )
        // Killed when it has answered some and holds many: the window is full of requests that it takes with it.
        for (const enough of [100, 250]) {
          const server = yield* start
          while ((yield* Ref.get(answered)) < enough) yield* Effect.sleep("2 millis")
          assert.isBelow(yield* Ref.get(answered), 600)
          yield* kill(server)
        }
        yield* start
        assert.deepStrictEqual(yield* Fiber.join(submitted), requests.map(paid))
      }), 120_000)
  }
})

const exited = (child: ChildProcess) =>
  Effect.callback<readonly [number | null, string | null]>((resume) => void child.on("exit", (code, signal) => resume(Effect.succeed([code, signal]))))

describe("a server process in mid-run", () => {
  for (const [pattern, layer] of Object.entries(clients)) {
    it.live(`that is frozen holds up none of its client's requests for good: ${pattern}`, () =>
      Effect.gen(function*() {
        const endpoints = [yield* freeAddress, yield* freeAddress]
        const start = (endpoint: string) => Effect.acquireRelease(Effect.sync(() => spawn(process.execPath, [program, pattern, endpoint], { stdio: "ignore" })), kill)
        const [frozen] = yield* Effect.forEach(endpoints, start)
        const client = Context.get(
          yield* Layer.build(layer({ endpoint: endpoints, window: 64, joinMax: 4, requestTimeout: "400 millis", retry: Schedule.spaced("20 millis"), socket: { reconnectMs: 20, reconnectMaxMs: 50 } })),
          ChargeClient
        )
        const answered = yield* Ref.make(0)
        const requests = Array.from({ length: 400 }, (_, index) => chargeFor(`c_${index}`, "2026-07", { amountMinor: 1000 + index }))
        const submitted = yield* Effect.forkChild(
          Effect.forEach(requests, (request) => Effect.tap(client.submit(request), () => Ref.update(answered, (n) => n + 1)), { concurrency: "unbounded" })
        )
        while ((yield* Ref.get(answered)) < 100) yield* Effect.sleep("2 millis")
        frozen!.kill("SIGSTOP")
        assert.deepStrictEqual(yield* Fiber.join(submitted), requests.map(paid))
      }), 120_000)

    it.live(`that is told to stop answers what it has and ends with 0: ${pattern}`, () =>
      Effect.gen(function*() {
        const endpoint = yield* freeAddress
        const server = yield* Effect.acquireRelease(Effect.sync(() => spawn(process.execPath, [program, pattern, endpoint], { stdio: "ignore" })), kill)
        const ended = yield* Effect.forkChild(exited(server), { startImmediately: true })
        const client = Context.get(yield* Layer.build(layer({ endpoint, joinMax: 8, requestTimeout: "2 seconds", retry: Schedule.spaced("20 millis"), socket: { reconnectMs: 20, reconnectMaxMs: 50 } })), ChargeClient)
        const answered = yield* Ref.make(0)
        const requests = Array.from({ length: 300 }, (_, index) => chargeFor(`c_${index}`, "2026-07", { amountMinor: 1000 + index }))
        const submitted = yield* Effect.forkChild(
          Effect.forEach(requests, (request) => Effect.tap(client.submit(request), () => Ref.update(answered, (n) => n + 1)), { concurrency: "unbounded" })
        )
        while ((yield* Ref.get(answered)) < 50) yield* Effect.sleep("2 millis")
        server.kill("SIGTERM")
        const [code, signal] = yield* Fiber.join(ended)
        assert.deepStrictEqual([code, signal], [0, null])
        // What it had not begun goes to the next one.
        yield* Effect.acquireRelease(Effect.sync(() => spawn(process.execPath, [program, pattern, endpoint], { stdio: "ignore" })), kill)
        assert.deepStrictEqual(yield* Fiber.join(submitted), requests.map(paid))
      }), 120_000)
  }
})
