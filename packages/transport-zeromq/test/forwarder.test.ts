import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import type { ChargeClient, ChargeServer } from "@purser/core"
import { type Patience, TransportConformance } from "@purser/testkit/TransportConformance"
import { defaultRetry, Forwarder, type ForwarderDevice, type PatternClientOptions, ZmqTransport } from "@purser/transport-zeromq"
import { Effect, Exit, FileSystem, type Layer, Schedule, Scope } from "effect"
import { execFileSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import * as zmq from "zeromq"
import { bare, freeAddress } from "./support.ts"

const patience: Record<Patience, PatternClientOptions> = {
  patient: { requestTimeout: "60 seconds" },
  hurried: { requestTimeout: "150 millis", retry: Schedule.spaced("10 millis").pipe(Schedule.upTo({ times: 500 })) },
  brief: { requestTimeout: "100 millis", retry: defaultRetry(2) }
}
const common = { drainTimeout: "30 seconds", socket: { reconnectMs: 10, reconnectMaxMs: 50 } } as const

interface Through {
  readonly device: ForwarderDevice
  readonly client: (endpoint: string, own: PatternClientOptions) => Layer.Layer<ChargeClient, unknown>
  readonly server: (endpoint: string) => Layer.Layer<ChargeServer, unknown>
}

const patterns: Record<string, Through> = {
  "req-rep through a queue": {
    device: "queue",
    client: (endpoint, own) => ZmqTransport.layerReqRepClient({ ...common, ...own, endpoint, sockets: 2 }),
    server: (endpoint) => ZmqTransport.layerReqRepServer({ ...common, endpoint })
  },
  "router-dealer through a queue": {
    device: "queue",
    client: (endpoint, own) => ZmqTransport.layerRouterDealerClient({ ...common, ...own, endpoint, window: 50, joinMax: 8 }),
    server: (endpoint) => ZmqTransport.layerRouterDealerServer({ ...common, endpoint })
  },
  // Requests go through it; answers go past it, to the return address that each request carries.
  "push-pull through a streamer": {
    device: "streamer",
    client: (endpoint, own) => ZmqTransport.layerPushPullClient({ ...common, ...own, endpoint, window: 50, joinMax: 8 }),
    server: (endpoint) => ZmqTransport.layerPushPullServer({ ...common, endpoint })
  },
  // Answers go past it here too.
  "pub-sub through a forwarder": {
    device: "forwarder",
    client: (endpoint, own) => ZmqTransport.layerPubSubClient({ ...common, ...own, endpoint, window: 50, joinMax: 8 }),
    server: (endpoint) => ZmqTransport.layerPubSubServer({ ...common, endpoint })
  }
}

const networks = {
  ipc: Effect.gen(function*() {
    const folder = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped({ prefix: "purser-" })
    return [`ipc://${folder}/front.sock`, `ipc://${folder}/back.sock`] as const
  }).pipe(Effect.provide(NodeServices.layer)),
  tcp: Effect.all([freeAddress, freeAddress])
}

for (const [name, { client, device, server }] of Object.entries(patterns)) {
  for (const [network, addresses] of Object.entries(networks)) {
    TransportConformance.suite(
      `${name} over ${network}`,
      Effect.gen(function*() {
        const [frontend, backend] = yield* addresses
        yield* Forwarder.open({ device, frontend, backend, socket: common.socket })
        return { client: (kind: Patience) => client(frontend, patience[kind]), server: server(`>${backend}`) }
      }),
      { clock: "live" }
    )
  }
}

describe("a device", () => {
  it.live("passes any bytes on, and subscriptions the other way", () =>
    Effect.gen(function*() {
      const device = yield* Forwarder.open({ device: "forwarder", frontend: "tcp://127.0.0.1:*", backend: "tcp://127.0.0.1:*" })
      const publisher = yield* bare(() => new zmq.Publisher({ linger: 0 }))
      const subscriber = yield* bare(() => new zmq.Subscriber({ linger: 0 }))
      publisher.connect(device.frontend[0]!)
      subscriber.connect(device.backend[0]!)
      subscriber.subscribe("wanted")
      // A subscription takes its time through two sockets; what is published before is nobody's.
      const publishing = yield* Effect.forkChild(
        Effect.forever(Effect.andThen(Effect.promise(() => publisher.send(["other", "x"]).then(() => publisher.send(["wanted", Buffer.from([0, 255, 1])]))), Effect.sleep("10 millis")))
      )
      const [topic, body] = yield* Effect.promise(() => subscriber.receive())
      assert.deepStrictEqual([topic!.toString(), [...body!]], ["wanted", [0, 255, 1]])
      assert.isDefined(publishing)
    }), 60_000)

  it.live("closes while messages wait in it for a side that nobody serves, and gives its addresses back", () =>
    Effect.gen(function*() {
      const [frontend, backend] = yield* networks.tcp
      for (const round of [1, 2]) {
        const scope = yield* Scope.make()
        yield* Scope.provide(Forwarder.open({ device: "streamer", frontend, backend, socket: { lingerMs: 100, highWaterMark: 2 } }), scope)
        const push = yield* bare(() => new zmq.Push({ linger: 0, sendTimeout: 2000, sendHighWaterMark: 10 }))
        push.connect(frontend)
        yield* Effect.promise(() => push.send(`round ${round}`))
        yield* Scope.close(scope, Exit.void)
      }
    }), 60_000)

  it.live("refuses an address that other machines reach, and says which it could not bind", () =>
    Effect.gen(function*() {
      const taken = yield* freeAddress
      const holder = yield* bare(() => new zmq.Pull())
      yield* Effect.promise(() => holder.bind(taken))
      const refused = (options: { readonly frontend: string; readonly backend: string }) =>
        Effect.map(Effect.flip(Forwarder.open({ device: "queue", ...options, socket: { bindWaitMs: 0 } })), ({ message, reason }) => [reason._tag, message] as const)
      const [unauthorized] = yield* refused({ frontend: "tcp://0.0.0.0:5555", backend: "tcp://127.0.0.1:*" })
      assert.strictEqual(unauthorized, "Unauthorized")
      const [closed, message] = yield* refused({ frontend: "tcp://127.0.0.1:*", backend: taken })
      assert.strictEqual(closed, "Closed")
      assert.include(message, taken)
    }), 60_000)

  it("in the example carries what it is given", () => {
    const output = execFileSync(process.execPath, [fileURLToPath(new URL("../examples/forwarder.ts", import.meta.url))], { encoding: "utf8", timeout: 60_000 })
    assert.strictEqual(output, "for whoever is there\n")
  }, 90_000)
})
