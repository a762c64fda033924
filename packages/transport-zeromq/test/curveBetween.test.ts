import { assert, describe, it } from "@effect/vitest"
import { ChargeClient, type ChargeServer, Principal, type TransportError } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { allowKeys, Broker, type CurveKeyPair, type CurveSettings, Forwarder, generateKeyPair, ZmqTransport } from "@purser/transport-zeromq"
import { type Config, Context, Effect, Layer, Ref, Schedule, type Scope } from "effect"
import { freeAddress, paid, reasonOf, serveOn } from "./support.ts"

interface Side {
  readonly endpoint: string
  readonly socket: { readonly curve?: CurveSettings }
}

interface Between {
  readonly open: (front: string, back: string, curve: CurveSettings) => Effect.Effect<unknown, TransportError | Config.ConfigError, Scope.Scope>
  readonly client: (side: Side) => Layer.Layer<ChargeClient, unknown>
  readonly server: (front: string, back: string, curve: CurveSettings) => Layer.Layer<ChargeServer, unknown>
}

const patience = { requestTimeout: "300 millis", retry: Schedule.recurs(8) } as const

const kinds: Record<string, Between> = {
  "a broker": {
    open: (endpoint, _, curve) => Broker.open({ endpoint, socket: { curve } }),
    client: (side) => ZmqTransport.layerMajordomoClient({ ...side, ...patience }),
    server: (endpoint, _, curve) => ZmqTransport.layerMajordomoServer({ endpoint, socket: { curve } })
  },
  "a queue": {
    open: (frontend, backend, curve) => Forwarder.open({ device: "queue", frontend, backend, socket: { curve } }),
    client: (side) => ZmqTransport.layerRouterDealerClient({ ...side, ...patience }),
    server: (_, backend, curve) => ZmqTransport.layerRouterDealerServer({ endpoint: `>${backend}`, socket: { curve } })
  },
  "a streamer": {
    open: (frontend, backend, curve) => Forwarder.open({ device: "streamer", frontend, backend, socket: { curve } }),
    client: (side) => ZmqTransport.layerPushPullClient({ ...side, ...patience }),
    server: (_, backend, curve) => ZmqTransport.layerPushPullServer({ endpoint: `>${backend}`, socket: { curve } })
  }
}

const asClient = (own: CurveKeyPair, fleet: CurveKeyPair): CurveSettings => ({ own, serverKey: fleet.publicKey })
const submitter = (layer: Layer.Layer<ChargeClient, unknown>) => Effect.map(Layer.build(layer), (context) => Context.get(context, ChargeClient).submit)

const checked = Effect.fnUntraced(function*({ client, open, server }: Between) {
  const [fleet, alice, bob] = [yield* generateKeyPair, yield* generateKeyPair, yield* generateKeyPair]
  const [front, back] = [yield* freeAddress, yield* freeAddress]
  // Two names on the list: were there one, it would be known without a seal.
  const curve: CurveSettings = { own: fleet, clients: allowKeys({ alice: alice.publicKey, bob: bob.publicKey }) }
  const stranger = yield* generateKeyPair
  yield* open(front, back, curve)
  const seen = yield* Ref.make<ReadonlyArray<string | null>>([])
  yield* serveOn(server(front, back, curve), (request) =>
    Effect.gen(function*() {
      const principal = yield* Principal
      yield* Ref.update(seen, (all) => [...all, principal])
      return paid(request)
    }))
  const submit = yield* submitter(client({ endpoint: front, socket: { curve: asClient(alice, fleet) } }))
  assert.strictEqual((yield* submit(chargeFor("a", "2026-07")))._tag, "Succeeded")
  assert.deepStrictEqual([...new Set(yield* Ref.get(seen))], ["alice"])
  for (const socket of [{ curve: asClient(stranger, fleet) }, {}]) {
    const error = yield* Effect.scoped(Effect.flatMap(submitter(client({ endpoint: front, socket })), (ask) => Effect.flip(ask(chargeFor("m", "2026-07")))))
    assert.strictEqual(reasonOf(error), "Unauthorized")
  }
  assert.deepStrictEqual([...new Set(yield* Ref.get(seen))], ["alice"])
})

describe("CURVE with something between", () => {
  // One test for all of them: the process has one handler of ZAP, and its address is free again only some time after the last socket.
  it.live("a broker, a queue or a streamer lets listed keys in and nobody else, and the worker learns who asked", () =>
    Effect.forEach(Object.values(kinds), checked, { discard: true }), 120_000)
})
