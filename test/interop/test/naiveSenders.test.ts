/**
 * The table "What must never reach a key" of `docs/protocol.md`, line by line: a sender whose key holds what its pattern
 * changes under its hands, the naive worker that believes the key, and ours beside it on the same deliveries.
 */
import { assert, layer } from "@effect/vitest"
import { Wire } from "@purser/core"
import { ZmqTransport } from "@purser/transport-zeromq"
import { Clock, Effect, Exit, Result, Scope } from "effect"
import { randomUUID } from "node:crypto"
import * as zmq from "zeromq"
import { bill, naiveKey, Shop } from "../src/Shop.ts"
import { bare, freeAddress, receive, send, serveOn } from "../src/sockets.ts"

const wire = Wire.make({ labels: "calendar" })

/** Hands a message that came over a bare socket to both workers. */
const handle = Effect.fnUntraced(function*(body: Uint8Array | undefined) {
  const frame = Result.getOrThrow(wire.decodeRequests(Buffer.from(body!).toString()))
  if (frame.form !== "plain") throw new Error("a plain message was sent")
  return yield* (yield* Shop).serve(Result.getOrThrow(frame.request))
})

/** The naive worker charged for each of the two deliveries, and ours once for both. */
const twiceAndOnce = Effect.fnUntraced(function*(customer: string) {
  assert.deepStrictEqual(yield* (yield* Shop).payments(customer), [2, 1])
})

layer(Shop.layer, { timeout: 120_000, excludeTestServices: true })("what must never reach a key", (it) => {
  const live = (title: string, test: Effect.Effect<void, unknown, Shop | Scope.Scope>) => it.effect(title, () => test, 120_000)
  const serving = Effect.fnUntraced(function*(layerOf: typeof ZmqTransport.layerReqRepServer | typeof ZmqTransport.layerRouterDealerServer | typeof ZmqTransport.layerPushPullServer, options: { readonly endpoint: string; readonly ackEndpoint?: string }) {
    const shop = yield* Shop
    return yield* serveOn(layerOf(options), shop.serve)
  })

  // A Lazy Pirate: the answer is late, the socket is thrown away, and a new one asks again.
  let objects = 0
  const reqParts: Record<string, Effect.Effect<string | number>> = {
    "the time at which the socket was made": Effect.andThen(Effect.sleep("2 millis"), Clock.currentTimeMillis),
    "the id of the socket's object": Effect.sync(() => ++objects),
    "a UUID made with the socket": Effect.sync(() => randomUUID())
  }
  for (const [part, make] of Object.entries(reqParts)) {
    live(`REQ/REP: ${part}`, Effect.gen(function*() {
      const endpoint = yield* freeAddress
      yield* serving(ZmqTransport.layerReqRepServer, { endpoint })
      const customer = `req ${part}`
      const life = Effect.gen(function*() {
        const socket = yield* bare(() => new zmq.Request({ linger: 0 }))
        const made = yield* make
        socket.connect(endpoint)
        yield* send(socket, bill(customer, naiveKey(made, customer)))
        yield* (yield* Shop).served
        return socket
      })
      // Both workers have charged; nobody reads the answer.
      yield* Effect.scoped(life)
      yield* Effect.flatMap(life, receive)
      yield* twiceAndOnce(customer)
    }))
  }

  // A producer and workers that come and go between the delivery and its repetition.
  interface Producer {
    sequence: number
    connections: number
    acknowledged: number
    endpoint: string
  }
  const pushParts: Record<string, (producer: Producer) => string | number> = {
    "the worker's acknowledgement counter": ({ acknowledged }) => acknowledged,
    "the producer's sequence number": ({ sequence }) => sequence,
    "the last endpoint": ({ endpoint }) => endpoint,
    "the count of connections": ({ connections }) => connections
  }
  for (const [part, keyPart] of Object.entries(pushParts)) {
    live(`PUSH/PULL: ${part}`, Effect.gen(function*() {
      const shop = yield* Shop
      const customer = `push ${part}`
      const ackEndpoint = yield* freeAddress
      const acks = yield* bare(() => new zmq.Pull({ linger: 0 }))
      yield* Effect.promise(() => acks.bind(ackEndpoint))
      const producer: Producer = { sequence: 0, connections: 0, acknowledged: 0, endpoint: "" }
      const deliver = Effect.fnUntraced(function*(to: string) {
        const socket = yield* bare(() => new zmq.Push({ linger: 0 }))
        producer.endpoint = yield* freeAddress
        const worker = yield* serving(ZmqTransport.layerPushPullServer, { endpoint: producer.endpoint, ackEndpoint })
        socket.connect(producer.endpoint)
        producer.connections += 1
        producer.sequence += 1
        yield* send(socket, bill(to, naiveKey(keyPart(producer), to), { seq: producer.sequence }))
        yield* shop.served
        yield* receive(acks)
        yield* Scope.close(worker, Exit.void)
      }, Effect.scoped)
      // The first acknowledgement arrives and is forgotten in a crash; by the next start another bill was acknowledged.
      yield* deliver(customer)
      producer.acknowledged += 1
      yield* deliver(`other ${part}`)
      producer.acknowledged += 1
      yield* deliver(customer)
      yield* twiceAndOnce(customer)
    }))
  }

  live("PUSH at the high-water mark: a request id made anew at each EAGAIN", Effect.gen(function*() {
    const shop = yield* Shop
    const endpoint = yield* freeAddress
    const socket = yield* bare(() => new zmq.Push({ linger: 0, sendHighWaterMark: 1, sendTimeout: 0 }))
    socket.connect(endpoint)
    // No worker is there yet. The first bill is queued, the next one is not; the naive loop sends its batch again, under new ids.
    const batch = ["hwm first", "hwm second"]
    const sendBatch = Effect.forEach(batch, (customer) => Effect.promise(() => socket.send(bill(customer, naiveKey(randomUUID(), customer)))), { discard: true })
    assert.isTrue(Exit.hasDies(yield* Effect.exit(sendBatch)))
    yield* serving(ZmqTransport.layerPushPullServer, { endpoint })
    const wholeBatch = Effect.gen(function*() {
      for (const customer of batch) {
        // The naive loop again: from the start, whenever it is full.
        yield* Effect.promise(() => socket.send(bill(customer, naiveKey(randomUUID(), customer))))
        yield* shop.served
      }
    })
    yield* shop.served
    yield* wholeBatch
    yield* twiceAndOnce("hwm first")
    assert.deepStrictEqual(yield* shop.payments("hwm second"), [1, 1])
  }))

  // The DEALER is made anew by a reconnect or a deploy, and so is what identifies it.
  const dealerParts: Record<string, (life: number) => string> = {
    "the DEALER's own identity": (life) => `dealer-${life}`,
    "a host's or pod's name": (life) => `billing-7f9c-${["x2x9k", "p4q7z"][life]}`,
    "the process id": (life) => String(4711 + life),
    "a UUID made at start-up": () => randomUUID()
  }
  for (const [part, identity] of Object.entries(dealerParts)) {
    live(`ROUTER/DEALER: ${part}`, Effect.gen(function*() {
      const endpoint = yield* freeAddress
      yield* serving(ZmqTransport.layerRouterDealerServer, { endpoint })
      const customer = `dealer ${part}`
      const life = Effect.fnUntraced(function*(count: number) {
        const routingId = identity(count)
        const socket = yield* bare(() => new zmq.Dealer({ linger: 0, routingId }))
        socket.connect(endpoint)
        yield* send(socket, bill(customer, naiveKey(routingId, customer)))
        yield* (yield* Shop).served
        return socket
      })
      yield* Effect.scoped(life(0))
      yield* Effect.flatMap(life(1), receive)
      yield* twiceAndOnce(customer)
    }))
  }

  live("ROUTER/DEALER: the routing frame at the ROUTER", Effect.gen(function*() {
    const endpoint = yield* freeAddress
    // The worker itself is naive here: it makes the key of the frame that its socket put before the message.
    const router = yield* bare(() => new zmq.Router({ linger: 0 }))
    yield* Effect.promise(() => router.bind(endpoint))
    const customer = "routing frame"
    const life = Effect.gen(function*() {
      const socket = yield* bare(() => new zmq.Dealer({ linger: 0 }))
      socket.connect(endpoint)
      yield* send(socket, bill(customer, ""))
      const [route, body] = yield* receive(router)
      const message = { ...JSON.parse(String(body)), idempotency_key: naiveKey(Buffer.from(route!).toString("hex"), customer) }
      yield* handle(Buffer.from(JSON.stringify(message)))
      yield* (yield* Shop).served
    })
    yield* Effect.scoped(life)
    yield* Effect.scoped(life)
    yield* twiceAndOnce(customer)
  }))

  live("PUB/SUB with replay: the publication's sequence on one path, the replay's on the other", Effect.gen(function*() {
    const [live, replay] = [yield* freeAddress, yield* freeAddress]
    const publisher = yield* bare(() => new zmq.XPublisher({ linger: 0 }))
    yield* Effect.promise(() => publisher.bind(live))
    const history = yield* bare(() => new zmq.Reply({ linger: 0 }))
    yield* Effect.promise(() => history.bind(replay))
    const customer = "replayed"
    const keyed = (body: Uint8Array, sequence: string) => Buffer.from(JSON.stringify({ ...JSON.parse(String(body)), idempotency_key: naiveKey(sequence, customer) }))
    const subscribe = Effect.gen(function*() {
      const subscriber = yield* bare(() => new zmq.Subscriber({ linger: 0 }))
      subscriber.connect(live)
      subscriber.subscribe()
      yield* receive(publisher)
      return subscriber
    })
    yield* Effect.scoped(Effect.gen(function*() {
      const subscriber = yield* subscribe
      yield* send(publisher, "17", bill(customer, ""))
      const [sequence, body] = yield* receive(subscriber)
      yield* handle(keyed(body!, String(sequence)))
    }))
    // The subscriber is back and asks for what it may have missed; replays count from one.
    const asking = yield* bare(() => new zmq.Request({ linger: 0 }))
    asking.connect(replay)
    yield* send(asking, "since 16")
    yield* receive(history)
    yield* send(history, "1", bill(customer, ""))
    const [sequence, body] = yield* receive(asking)
    yield* handle(keyed(body!, String(sequence)))
    yield* twiceAndOnce(customer)
  }))

  live("PAIR: the endpoint's address", Effect.gen(function*() {
    const customer = "pair"
    const life = Effect.scoped(Effect.gen(function*() {
      const [left, right] = [yield* bare(() => new zmq.Pair({ linger: 0 })), yield* bare(() => new zmq.Pair({ linger: 0 }))]
      yield* Effect.promise(() => left.bind("tcp://127.0.0.1:*"))
      const address = left.lastEndpoint!
      right.connect(address)
      yield* send(right, bill(customer, naiveKey(address, customer)))
      const [body] = yield* receive(left)
      yield* handle(body)
      return address
    }))
    const ports = [yield* life, yield* life]
    assert.notStrictEqual(ports[0], ports[1])
    yield* twiceAndOnce(customer)
  }))
})
