import { assert, describe, it } from "@effect/vitest"
import { ChargeClient, Wire, type ReadRequest } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { type PushPullClientOptions, ZmqMetrics, ZmqTransport } from "@purser/transport-zeromq"
import { Context, Effect, Exit, Fiber, Latch, Layer, Metric, Ref, Result, Schedule, Scope } from "effect"
import { randomUUID } from "node:crypto"
import * as zmq from "zeromq"
import { bare, countOf, freeAddress, isolated, paid, paidItem, reasonOf, serveOn } from "./support.ts"

const wire = Wire.make({ labels: "calendar" })
const clientOf = (options: PushPullClientOptions) =>
  Effect.map(Layer.build(ZmqTransport.layerPushPullClient(options)), (context) => Context.get(context, ChargeClient))
const patient = { requestTimeout: "60 seconds", retry: Schedule.recurs(5) } as const
const plain = { customer_id: "c", billing_period: "2026-07", amount_cents: 1000, stripe_customer_id: "cus_1" }

/** A hand-driven worker at an address: it shows what is pushed to it, and answers to where the message says. */
const puppetWorker = Effect.fnUntraced(function*(address: string) {
  const pull = yield* bare(() => new zmq.Pull({ linger: 0 }))
  yield* Effect.promise(() => pull.bind(address))
  const take = Effect.map(Effect.promise(() => pull.receive()), ([back, body]) => {
    const frame = Result.getOrThrow(wire.decodeRequests(String(body)))
    if (frame.form === "plain") throw new Error("the client sends joined frames")
    return { back: String(back), items: frame.items }
  })
  const answer = Effect.fnUntraced(function*(back: string, ...texts: ReadonlyArray<string>) {
    const push = yield* bare(() => new zmq.Push({ linger: 1000 }))
    push.connect(back)
    for (const text of texts) yield* Effect.promise(() => push.send(text))
  })
  return { take, answer }
})

const replyTo = ({ id, request }: { readonly id: string; readonly request: ReadRequest | null }, amountMinor: number) =>
  wire.encodeReplies([{ id, reply: Result.succeed(paidItem(request, amountMinor)) }])

describe("push-pull", () => {
  it.live("takes an acknowledgement for the request that it names, in any order, once", () =>
    isolated(Effect.gen(function*() {
      const address = yield* freeAddress
      const worker = yield* puppetWorker(address)
      const client = yield* clientOf({ ...patient, endpoint: address })
      const submitted = yield* Effect.forkChild(
        Effect.forEach([1, 2, 3], (n) => client.submit(chargeFor(`c_${n}`, "2026-07")), { concurrency: "unbounded" })
      )
      const { back, items } = yield* worker.take
      const replies = items.map((item, index) => replyTo(item, 1000 + index))
      yield* worker.answer(back, replies[2]!, replyTo({ id: "of-another", request: null }, 9999), replies[2]!, replies[0]!, replies[1]!)
      const outcomes = yield* Fiber.join(submitted)
      assert.deepStrictEqual(outcomes.map((outcome) => outcome._tag === "Succeeded" && outcome.amountReceivedMinor), [1000, 1001, 1002])
      assert.strictEqual(yield* countOf(ZmqMetrics.strayReplies), 2)
    })), 60_000)

  it.live("makes eight frames of a full window, so that workers share it", () =>
    isolated(Effect.gen(function*() {
      const address = yield* freeAddress
      const worker = yield* puppetWorker(address)
      const client = yield* clientOf({ ...patient, endpoint: address, window: 24 })
      const submitted = yield* Effect.forkChild(
        Effect.forEach(Array.from({ length: 24 }, (_, n) => chargeFor(`c_${n}`, "2026-07")), (request) => client.submit(request), { concurrency: "unbounded" })
      )
      for (let frame = 0; frame < 8; frame++) {
        const { back, items } = yield* worker.take
        assert.strictEqual(items.length, 3)
        yield* worker.answer(back, ...items.map((item) => replyTo(item, 1000)))
      }
      assert.strictEqual((yield* Fiber.join(submitted)).length, 24)
    })), 60_000)

  it.live("delivers again to another worker what a worker took with it", () =>
    Effect.gen(function*() {
      const addresses = [yield* freeAddress, yield* freeAddress]
      const swallowed = yield* Ref.make(0)
      const all = yield* Latch.make(false)
      // It takes requests and never answers, as a worker that is killed after it has received.
      const scope = yield* Scope.make()
      const silent = yield* Scope.provide(puppetWorker(addresses[0]!), scope)
      yield* Effect.forkIn(
        Effect.forever(Effect.tap(silent.take, ({ items }) => Effect.andThen(Ref.update(swallowed, (n) => n + items.length), all.open))),
        scope
      )
      yield* serveOn(ZmqTransport.layerPushPullServer({ endpoint: addresses[1]! }), (request) => Effect.succeed(paid(request)))
      const client = yield* clientOf({ endpoint: addresses, requestTimeout: "200 millis", retry: Schedule.spaced("10 millis"), joinMax: 1 })
      const requests = Array.from({ length: 40 }, (_, index) => chargeFor(`c_${index}`, "2026-07", { amountMinor: 1000 + index }))
      const submitted = yield* Effect.forkChild(
        Effect.forEach(requests, (request) => client.submit(request), { concurrency: "unbounded" })
      )
      while ((yield* Ref.get(swallowed)) === 0) yield* Effect.sleep("5 millis")
      assert.deepStrictEqual(yield* Fiber.join(submitted), requests.map(paid))
      yield* Scope.close(scope, Exit.void)
    }), 60_000)

  it.live("several producers share a worker, each with its own answers", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      yield* serveOn(ZmqTransport.layerPushPullServer({ endpoint }), (request) => Effect.succeed(paid(request)))
      const clients = yield* Effect.forEach([0, 1, 2], () => clientOf({ ...patient, endpoint }))
      const got = yield* Effect.forEach(clients, (client, n) =>
        Effect.forEach(Array.from({ length: 50 }, (_, index) => chargeFor(`c_${n}_${index}`, "2026-07", { amountMinor: 1000 + index })), (request) =>
          Effect.map(client.submit(request), (outcome) => [outcome, paid(request)]), { concurrency: "unbounded" }), { concurrency: "unbounded" })
      for (const [outcome, expected] of got.flat()) assert.deepStrictEqual(outcome, expected)
    }), 60_000)

  it.live("workers join and leave at a producer that binds", () =>
    Effect.gen(function*() {
      const address = yield* freeAddress
      const client = yield* clientOf({ endpoint: `@${address}`, requestTimeout: "200 millis", retry: Schedule.spaced("10 millis"), socket: { reconnectMs: 10 } })
      const served: Array<number> = []
      for (const n of [1, 2, 3]) {
        const worker = yield* serveOn(ZmqTransport.layerPushPullServer({ endpoint: `>${address}` }), (request) =>
          Effect.sync(() => {
            served.push(n)
            return paid(request)
          }))
        const request = chargeFor(`c_${n}`, "2026-07")
        assert.deepStrictEqual(yield* client.submit(request), paid(request))
        yield* Scope.close(worker, Exit.void)
      }
      assert.deepStrictEqual([...new Set(served)], [1, 2, 3])
    }), 60_000)

  it.live("answers plain messages at the acknowledgement socket, with their counter", () =>
    isolated(Effect.gen(function*() {
      const [endpoint, ackEndpoint] = [yield* freeAddress, yield* freeAddress]
      yield* serveOn(ZmqTransport.layerPushPullServer({ endpoint, ackEndpoint }), (request) => Effect.succeed(paid(request)))
      const ack = yield* bare(() => new zmq.Pull({ linger: 0 }))
      yield* Effect.promise(() => ack.bind(ackEndpoint))
      const push = yield* bare(() => new zmq.Push({ linger: 0 }))
      push.connect(endpoint)
      const next = Effect.map(Effect.promise(() => ack.receive()), (frames) => JSON.parse(frames.map(String).join("|")))
      for (const message of [JSON.stringify({ ...plain, seq: 41 }), ["", JSON.stringify({ ...plain, seq: "forty-two" })]]) {
        yield* Effect.promise(() => push.send(message))
      }
      const acknowledged = [yield* next, yield* next]
      assert.sameMembers(acknowledged.map(({ ack_seq }) => ack_seq), [41, "forty-two"])
      assert.deepStrictEqual(acknowledged.map(({ status }) => status), ["ok", "ok"])
      yield* Effect.promise(() => push.send("not JSON"))
      assert.deepInclude((yield* next).error, { reason: "MalformedMessage", outcome: "not_charged" })
    })), 60_000)

  it.live("serves plain messages without an acknowledgement socket, and drops those whose answer may not go where they say", () =>
    isolated(Effect.gen(function*() {
      const endpoint = yield* freeAddress
      const seen = yield* Ref.make<ReadonlyArray<string>>([])
      yield* serveOn(ZmqTransport.layerPushPullServer({ endpoint }), (request) =>
        Effect.as(Ref.update(seen, (all) => [...all, request.customerId]), paid(request)))
      const push = yield* bare(() => new zmq.Push({ linger: 0 }))
      push.connect(endpoint)
      const hostile = wire.encodeRequests("x", [{ id: "1", deadlineMs: 60_000, request: chargeFor("hostile", "2026-07") }])
      for (const back of ["tcp://10.0.0.1:1", "@tcp://127.0.0.1:1", "tcp://127.0.0.1:*", "http://127.0.0.1:1", "x"]) {
        yield* Effect.promise(() => push.send([back, hostile]))
      }
      yield* Effect.promise(() => push.send(JSON.stringify({ ...plain, customer_id: "quiet" })))
      while ((yield* countOf(ZmqMetrics.unroutableReplies)) === 0) yield* Effect.sleep("5 millis")
      const request = chargeFor("neighbour", "2026-07")
      assert.deepStrictEqual(yield* (yield* clientOf({ ...patient, endpoint })).submit(request), paid(request))
      assert.deepStrictEqual(yield* Ref.get(seen), ["quiet", "neighbour"])
      assert.strictEqual(yield* countOf(ZmqMetrics.refusedRequests), 5)
    })), 60_000)

  it.live("holds a bounded number of connections to producers, and still answers all", () =>
    isolated(Effect.gen(function*() {
      const endpoint = yield* freeAddress
      yield* serveOn(ZmqTransport.layerPushPullServer({ endpoint, producersMax: 2 }), (request) => Effect.succeed(paid(request)))
      const clients = yield* Effect.forEach([0, 1, 2, 3, 4], () => clientOf({ ...patient, endpoint }))
      for (const round of [1, 2]) {
        for (const client of clients) yield* client.submit(chargeFor(`c_${round}`, "2026-07"))
      }
      // Two of each client, the worker's own, and one for each of two clients.
      assert.strictEqual((yield* Metric.value(ZmqMetrics.openSockets)).value, 13)
    })), 60_000)

  it.live("finds a producer again that took answers in under the same in-process name before", () =>
    Effect.gen(function*() {
      const [endpoint, returnEndpoint] = [`inproc://workers-${randomUUID()}`, `inproc://answers-${randomUUID()}`]
      yield* serveOn(ZmqTransport.layerPushPullServer({ endpoint }), (request) => Effect.succeed(paid(request)))
      for (const round of [1, 2, 3]) {
        const request = chargeFor(`c_${round}`, "2026-07")
        const submitted = Effect.flatMap(clientOf({ endpoint, returnEndpoint, requestTimeout: "100 millis", retry: Schedule.spaced("10 millis") }), ({ submit }) => submit(request))
        assert.deepStrictEqual(yield* Effect.scoped(submitted), paid(request))
      }
    }), 60_000)

  it.live("refuses a return address that workers could not reach", () =>
    Effect.gen(function*() {
      const failing = (options: PushPullClientOptions) => Effect.map(Effect.flip(clientOf(options)), reasonOf)
      assert.strictEqual(yield* failing({ endpoint: "tcp://10.0.0.1:5555", allowPlain: true }), "Closed")
      assert.strictEqual(yield* failing({ endpoint: "tcp://10.0.0.1:5555", allowPlain: true, returnEndpoint: "tcp://*:5556" }), "Closed")
      assert.strictEqual(yield* failing({ returnEndpoint: ">tcp://127.0.0.1:5556" }), "Closed")
      assert.strictEqual(yield* failing({ returnEndpoint: "tcp://10.0.0.1:5556" }), "Unauthorized")
      yield* clientOf({ endpoint: "tcp://10.0.0.1:5555", allowPlain: true, returnEndpoint: "tcp://10.0.0.2:5556" })
    }), 60_000)
})
