import { assert, describe, it } from "@effect/vitest"
import { ChargeClient, ChargeServer } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { ZmqTransport } from "@purser/transport-zeromq"
import { Effect, Fiber, Latch, Ref } from "effect"
import { paid } from "./support.ts"

const loopbacks = {
  "req-rep": (endpoint: string) => ZmqTransport.layerReqRepLoopback({ endpoint, sockets: 2, requestTimeout: "60 seconds" }),
  "router-dealer": (endpoint: string) => ZmqTransport.layerRouterDealerLoopback({ endpoint, requestTimeout: "60 seconds" }),
  "push-pull": (endpoint: string) => ZmqTransport.layerPushPullLoopback({ endpoint, requestTimeout: "60 seconds" })
} as const

for (const [pattern, loopback] of Object.entries(loopbacks)) describe(`the loopback layer: ${pattern}`, () => {
  for (const endpoint of ["tcp://127.0.0.1:*", "ipc://*"]) {
    it.live(`finds a server that comes later, and again on another address: ${endpoint}`, () =>
      Effect.gen(function*() {
        const client = yield* ChargeClient
        const server = yield* ChargeServer
        for (const round of [1, 2, 3]) {
          const request = chargeFor(`c_${round}`, "2026-07")
          const submitted = yield* Effect.forkChild(client.submit(request), { startImmediately: true })
          const serving = yield* Effect.forkChild(server.serve((asked) => Effect.succeed(paid(asked))))
          assert.deepStrictEqual(yield* Fiber.join(submitted), paid(request))
          yield* Fiber.interrupt(serving)
        }
      }).pipe(Effect.provide(loopback(endpoint))), 60_000)
  }

  it.live("takes several servers in turn", () =>
    Effect.gen(function*() {
      const client = yield* ChargeClient
      const server = yield* ChargeServer
      const served = yield* Ref.make<ReadonlySet<number>>(new Set())
      for (const index of [1, 2]) {
        yield* Effect.forkChild(server.serve((request) => Effect.as(Ref.update(served, (all) => new Set([...all, index])), paid(request))))
      }
      while ((yield* Ref.get(served)).size < 2) yield* client.submit(chargeFor("c_1", "2026-07"))
    }).pipe(Effect.provide(loopback("tcp://127.0.0.1:*"))), 60_000)

  it.live("answers what it has begun when it closes", () =>
    Effect.gen(function*() {
      const client = yield* ChargeClient
      const server = yield* ChargeServer
      const begun = yield* Latch.make(false)
      const gate = yield* Latch.make(false)
      const serving = yield* Effect.forkChild(server.serve((request) => Effect.as(Effect.andThen(begun.open, gate.await), paid(request))))
      const request = chargeFor("c_1", "2026-07")
      const submitted = yield* Effect.forkChild(client.submit(request))
      yield* begun.await
      const stopped = yield* Effect.forkChild(Fiber.interrupt(serving), { startImmediately: true })
      yield* gate.open
      assert.deepStrictEqual(yield* Fiber.join(submitted), paid(request))
      yield* Fiber.join(stopped)
    }).pipe(Effect.provide(loopback("tcp://127.0.0.1:*"))), 60_000)
})
