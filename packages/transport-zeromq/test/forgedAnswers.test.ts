import { assert, describe, it } from "@effect/vitest"
import { ChargeClient, ChargeError, type ChargeReply, type ChargeRequest, GatewayUnavailable, Wire } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { Broker, ZmqMetrics, ZmqTransport } from "@purser/transport-zeromq"
import { Context, type Duration, Effect, Layer, Metric, Result, Schedule, type Scope } from "effect"
import * as zmq from "zeromq"
import { bare, freeAddress, paid } from "./support.ts"

const wire = Wire.make({ labels: "calendar" })
type Answer = (body: Uint8Array) => string
type Frames = ReadonlyArray<Uint8Array>

/** Answers whatever comes until the test ends. */
const answerAll = <S extends { readonly closed: boolean; readonly receive: () => Promise<Frames> }>(socket: S, answer: (frames: Frames) => Promise<unknown>) =>
  Effect.forkScoped(Effect.ignore(Effect.forever(Effect.tryPromise(() => socket.receive().then(answer)))))

const router = Effect.fnUntraced(function*(endpoint: string, answer: Answer) {
  const socket = yield* bare(() => new zmq.Router({ linger: 0 }))
  yield* Effect.promise(() => socket.bind(endpoint))
  yield* answerAll(socket, (frames) => socket.send([...frames.slice(0, -1) as Array<Uint8Array>, answer(frames.at(-1)!)]))
})

const returning = (open: () => zmq.Pull | zmq.Subscriber) =>
  Effect.fnUntraced(function*(endpoint: string, answer: Answer) {
    const socket = yield* bare(open)
    yield* Effect.promise(() => socket.bind(endpoint))
    const push = yield* bare(() => new zmq.Push({ linger: 0 }))
    const known = new Set<string>()
    yield* answerAll(socket, ([address, body]) => {
      const back = String(address)
      if (!known.has(back)) push.connect(back)
      known.add(back)
      return push.send(answer(body!))
    })
  })

const subscriber = () => {
  const socket = new zmq.Subscriber()
  socket.subscribe("")
  return socket
}

const behindBroker = Effect.fnUntraced(function*(endpoint: string, answer: Answer) {
  yield* Broker.open({ endpoint, drainTimeout: 0, heartbeat: "1 minute" })
  const socket = yield* bare(() => new zmq.Dealer({ linger: 0 }))
  socket.connect(endpoint)
  yield* Effect.promise(() => socket.send(["MDPW02", "\u0001", "charge"]))
  yield* answerAll(socket, (frames) => frames.length > 4 ? socket.send(["MDPW02", "\u0004", frames[2]!, "", answer(frames[4]!)]) : Promise.resolve())
})

interface Side {
  readonly endpoint: string
  readonly requestTimeout: Duration.Input
  readonly retry: Schedule.Schedule<unknown, unknown>
}
const patterns: Record<string, {
  readonly liar: (endpoint: string, answer: Answer) => Effect.Effect<unknown, unknown, Scope.Scope>
  readonly client: (side: Side) => Layer.Layer<ChargeClient, unknown>
}> = {
  "req-rep": { liar: router, client: ZmqTransport.layerReqRepClient },
  "router-dealer": { liar: router, client: ZmqTransport.layerRouterDealerClient },
  "push-pull": { liar: returning(() => new zmq.Pull()), client: ZmqTransport.layerPushPullClient },
  "pub-sub": { liar: returning(subscriber), client: ZmqTransport.layerPubSubClient },
  majordomo: { liar: behindBroker, client: ZmqTransport.layerMajordomoClient }
}

const another = chargeFor("another", "2026-07")
const lies: Record<string, (request: ChargeRequest) => ChargeReply> = {
  "says that another charge is paid": () => Result.succeed(paid(another)),
  "says that another charge has failed": () =>
    Result.fail(new ChargeError({ reason: new GatewayUnavailable({ operation: "confirm", status: 500, replayed: false, detail: "" }), chargeKey: another.chargeKey, requestId: null }))
}

describe.each(Object.keys(patterns))("a server on %s that lies", (name) => {
  it.live.each(Object.keys(lies))("and %s is not heard: the request is asked again", (lie) =>
    Effect.gen(function*() {
      const { client, liar } = patterns[name]!
      const endpoint = yield* freeAddress
      let asked = 0
      yield* liar(endpoint, (body) => {
        const frame = Result.getOrThrow(wire.decodeRequests(Buffer.from(body).toString()))
        if (frame.form === "plain") throw new Error("the client sends joined frames")
        asked++
        return wire.encodeReplies(frame.items.map(({ id, request }) => {
          const charge = Result.getOrThrow(request)
          return { id, reply: asked <= 2 ? lies[lie]!(charge) : Result.succeed(paid(charge)) }
        }))
      })
      const context = yield* Layer.build(client({ endpoint, requestTimeout: "300 millis", retry: Schedule.spaced("10 millis") }))
      const request = chargeFor("honest", "2026-07")
      assert.deepStrictEqual(yield* Context.get(context, ChargeClient).submit(request), paid(request))
      assert.isAtLeast(asked, 3)
      assert.isAtLeast((yield* Metric.value(ZmqMetrics.strayReplies)).count, 2)
    }).pipe(Effect.scoped, Effect.provideService(Metric.MetricRegistry, new Map())), 60_000)
})
