import { assert, describe, it } from "@effect/vitest"
import { Backpressure, ChargeClient, PeerLost, TransportError, Wire, type ReadRequest } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { type RouterDealerClientOptions, ZmqMetrics, ZmqTransport } from "@purser/transport-zeromq"
import { Context, Effect, Exit, Fiber, Latch, Layer, Metric, Result, Schedule, Scope } from "effect"
import { readdirSync } from "node:fs"
import * as zmq from "zeromq"
import { bare, countOf, freeAddress, isolated, paid, paidItem, reasonOf, serveOn } from "./support.ts"

const wire = Wire.make({ labels: "calendar" })
const clientOf = (options: RouterDealerClientOptions) =>
  Effect.map(Layer.build(ZmqTransport.layerRouterDealerClient(options)), (context) => Context.get(context, ChargeClient))
const patient = { requestTimeout: "60 seconds", retry: Schedule.recurs(5) } as const

/** A hand-driven server: it shows what the client sends, and answers what the test says. */
const puppet = Effect.gen(function*() {
  const address = yield* freeAddress
  const router = yield* bare(() => new zmq.Router({ linger: 0, mandatory: true, sendTimeout: 1000 }))
  yield* Effect.promise(() => router.bind(address))
  const take = Effect.map(Effect.promise(() => router.receive()), (frames) => {
    assert.strictEqual(frames.length, 2)
    const frame = Result.getOrThrow(wire.decodeRequests(String(frames[1])))
    if (frame.form === "plain") throw new Error("the client sends joined frames")
    const answer = (...text: Array<string>) => Effect.promise(() => router.send([frames[0]!, ...text]))
    return { peer: String(frames[0]), client: frame.client, items: frame.items, answer }
  })
  const replyTo = (items: ReadonlyArray<{ readonly id: string; readonly request: ReadRequest | null }>, amountMinor = 1000) =>
    wire.encodeReplies(items.map(({ id, request }) => ({ id, reply: Result.succeed(paidItem(request, amountMinor)) })))
  return { address, take, replyTo }
})

describe("router-dealer", () => {
  it.live("drops and counts foreign, repeated and unreadable answers", () =>
    isolated(Effect.gen(function*() {
      const { address, replyTo, take } = yield* puppet
      const client = yield* clientOf({ ...patient, endpoint: address })
      const submitted = yield* Effect.forkChild(client.submit(chargeFor("c_1", "2026-07")))
      const asked = yield* take
      assert.strictEqual(asked.client, asked.peer)
      assert.match(asked.peer, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
      yield* asked.answer(replyTo([{ id: "of-another-request", request: null }], 6666))
      yield* asked.answer("?")
      // Under the empty delimiter, as a server that thinks of REQ peers answers.
      yield* asked.answer("", replyTo(asked.items))
      const outcome = yield* Fiber.join(submitted)
      assert.strictEqual(outcome._tag === "Succeeded" && outcome.amountReceivedMinor, 1000)
      const next = yield* Effect.forkChild(client.submit(chargeFor("c_2", "2026-07")))
      const again = yield* take
      yield* again.answer(replyTo([...asked.items, ...again.items], 2000))
      assert.strictEqual((yield* Fiber.join(next))._tag, "Succeeded")
      assert.strictEqual(yield* countOf(ZmqMetrics.strayReplies), 3)
    })), 60_000)

  it.live("sends what waits in one frame, on one socket, while earlier requests are under way", () =>
    Effect.gen(function*() {
      const { address, replyTo, take } = yield* puppet
      const client = yield* clientOf({ ...patient, endpoint: address, joinMax: 4 })
      const submit = (customers: ReadonlyArray<string>) =>
        Effect.forkChild(Effect.forEach(customers, (customer) => client.submit(chargeFor(customer, "2026-07")), { concurrency: "unbounded" }))
      const first = yield* submit(["a"])
      const alone = yield* take
      const others = yield* submit(["b", "c", "d", "e", "f", "g"])
      const joined = yield* take
      const rest = yield* take
      assert.deepStrictEqual([alone.items.length, joined.items.length, rest.items.length], [1, 4, 2])
      assert.deepStrictEqual([joined.peer, rest.peer], [alone.peer, alone.peer])
      yield* joined.answer(replyTo([...rest.items, ...joined.items]))
      assert.strictEqual((yield* Fiber.join(others)).length, 6)
      yield* alone.answer(replyTo(alone.items))
      yield* Fiber.join(first)
    }), 60_000)

  it.live("sends again under the same id, and gives the socket up after silence", () =>
    isolated(Effect.gen(function*() {
      const { address, replyTo, take } = yield* puppet
      const client = yield* clientOf({ endpoint: address, requestTimeout: "60 millis", retry: Schedule.recurs(10_000), silencesMax: 2 })
      const request = chargeFor("c_1", "2026-07")
      const submitted = yield* Effect.forkChild(client.submit(request))
      const first = yield* take
      let last = first
      while (last.peer === first.peer) {
        assert.deepStrictEqual(last.items, first.items.map((item) => ({ ...item, deadlineMs: last.items[0]!.deadlineMs })))
        last = yield* take
      }
      assert.strictEqual(last.items[0]?.id, first.items[0]?.id)
      assert.isAtLeast(yield* countOf(ZmqMetrics.resentRequests), 1)
      assert.strictEqual((yield* Metric.value(ZmqMetrics.openSockets)).value, 1)
      // One answer may be late for its life; requests that go on are answered sooner or later.
      const answering = yield* Effect.forkChild(Effect.forever(Effect.flatMap(take, ({ answer, items }) => answer(replyTo(items)))))
      yield* last.answer(replyTo(last.items))
      assert.strictEqual((yield* Fiber.join(submitted))._tag, "Succeeded")
      answering.interruptUnsafe()
    })), 60_000)

  it.live("gives up after its attempts, and says not_charged only when each was refused so", () =>
    isolated(Effect.gen(function*() {
      const { address, take } = yield* puppet
      const client = yield* clientOf({ ...patient, endpoint: address, retry: Schedule.recurs(1) })
      const refusing = (reason: TransportError["reason"]) =>
        Effect.flatMap(take, ({ answer, items }) =>
          answer(wire.encodeReplies(items.map(({ id }) => ({ id, reply: Result.fail(new TransportError({ reason, chargeKey: null })) })))))
      const ending = (...reasons: ReadonlyArray<TransportError["reason"]>) =>
        Effect.gen(function*() {
          const submitted = yield* Effect.forkChild(Effect.flip(client.submit(chargeFor("c_1", "2026-07"))))
          yield* Effect.forEach(reasons, refusing, { discard: true })
          const error = yield* Fiber.join(submitted)
          return [reasonOf(error), error.outcome]
        })
      const full = new Backpressure({ endpoint: address, window: 1 })
      assert.deepStrictEqual(yield* ending(full, full), ["Backpressure", "not_charged"])
      assert.deepStrictEqual(yield* ending(new PeerLost({ endpoint: address }), full), ["PeerLost", "unknown"])

      const brief = yield* clientOf({ endpoint: yield* freeAddress, requestTimeout: "20 millis", retry: Schedule.recurs(2) })
      const request = chargeFor("c_2", "2026-07")
      const error = yield* Effect.flip(brief.submit(request))
      assert.deepInclude({ ...error }, { chargeKey: request.chargeKey })
      assert.deepInclude(error.reason, { _tag: "RetriesExhausted", attempts: 3 })
      assert.strictEqual(yield* countOf(ZmqMetrics.timeouts), 3)
    })), 60_000)

  it.live("has as many requests in flight as its window; one more waits, or fails unsent", () =>
    Effect.gen(function*() {
      for (const whenFull of ["wait", "fail"] as const) {
        const { address, replyTo, take } = yield* puppet
        const client = yield* clientOf({ ...patient, endpoint: address, window: 2, whenFull })
        const two = yield* Effect.forkChild(
          Effect.forEach(["a", "b"], (customer) => client.submit(chargeFor(customer, "2026-07")), { concurrency: "unbounded" })
        )
        const asked = yield* take
        assert.strictEqual(asked.items.length, 2)
        const third = yield* Effect.forkChild(Effect.result(client.submit(chargeFor("c", "2026-07"))), { startImmediately: true })
        if (whenFull === "fail") {
          const refused = yield* Fiber.join(third)
          assert.isTrue(Result.isFailure(refused) && reasonOf(refused.failure) === "Backpressure" && refused.failure.outcome === "not_charged")
        }
        yield* asked.answer(replyTo(asked.items))
        yield* Fiber.join(two)
        const next = whenFull === "wait" ? third : yield* Effect.forkChild(Effect.result(client.submit(chargeFor("c", "2026-07"))))
        const last = yield* take
        assert.deepStrictEqual(last.items.map(({ request }) => Result.getOrThrow(request).customerId), ["c"])
        yield* last.answer(replyTo(last.items))
        assert.isTrue(Result.isSuccess(yield* Fiber.join(next)))
      }
    }), 60_000)

  it.live("answers each request of a frame as soon as it is done", () =>
    Effect.gen(function*() {
      const address = yield* freeAddress
      const gate = yield* Latch.make(false)
      yield* serveOn(ZmqTransport.layerRouterDealerServer({ endpoint: address }), (request) =>
        request.customerId === "slow" ? Effect.as(gate.await, paid(request)) : Effect.succeed(paid(request)))
      const dealer = yield* bare(() => new zmq.Dealer({ linger: 0 }))
      dealer.connect(address)
      const items = ["slow", "a", "b"].map((id) => ({ id, deadlineMs: 60_000, request: chargeFor(id, "2026-07") }))
      yield* Effect.promise(() => dealer.send(wire.encodeRequests("client", items)))
      const receive = Effect.map(Effect.promise(() => dealer.receive()), (frames) =>
        Result.getOrThrow(wire.decodeReplies(frames.map(String).join(""))).map(({ id }) => id))
      // Those that are ready together come together.
      assert.deepStrictEqual(yield* receive, ["a", "b"])
      yield* gate.open
      assert.deepStrictEqual(yield* receive, ["slow"])
    }), 60_000)

  it.live("serves plain DEALER peers with and without delimiter, and one that takes over another's routing id", () =>
    isolated(Effect.gen(function*() {
      const address = yield* freeAddress
      yield* serveOn(ZmqTransport.layerRouterDealerServer({ endpoint: address }), (request) => Effect.succeed(paid(request)))
      const text = JSON.stringify({ customer_id: "c", billing_period: "2026-07", amount_cents: 1000, stripe_customer_id: "cus_1", seq: 7 })
      const ask = (socket: zmq.Dealer, ...frames: ReadonlyArray<string>) =>
        Effect.map(Effect.promise(() => socket.send([...frames]).then(() => socket.receive())), (reply) => reply.map(String))
      // By its answer the server is known to be there: the next one connects only once, or it would come back when it has
      // lost its id, and the two would take it from each other for ever.
      const probe = yield* bare(() => new zmq.Dealer({ linger: 0 }))
      probe.connect(address)
      yield* ask(probe, text)
      const first = yield* bare(() => new zmq.Dealer({ linger: 0, routingId: "pod-1", reconnectInterval: -1 }))
      first.connect(address)
      const [body] = yield* ask(first, text)
      assert.deepInclude(JSON.parse(body!), { status: "ok", ack_seq: 7 })
      const [delimiter, delimited] = yield* ask(first, "", text)
      assert.deepStrictEqual([delimiter, JSON.parse(delimited!).ack_seq], ["", 7])
      const second = yield* bare(() => new zmq.Dealer({ linger: 0, routingId: "pod-1" }))
      second.connect(address)
      assert.strictEqual(JSON.parse((yield* ask(second, text))[0]!).status, "ok")
    })), 60_000)

  it.live("counts an answer whose requester is gone, and serves the next one", () =>
    isolated(Effect.gen(function*() {
      const address = yield* freeAddress
      const begun = yield* Latch.make(false)
      const gate = yield* Latch.make(false)
      yield* serveOn(ZmqTransport.layerRouterDealerServer({ endpoint: address }), (request) =>
        request.customerId === "leaves" ? Effect.as(Effect.andThen(begun.open, gate.await), paid(request)) : Effect.succeed(paid(request)))
      const scope = yield* Scope.make()
      const leaving = Context.get(yield* Layer.buildWithScope(ZmqTransport.layerRouterDealerClient({ ...patient, endpoint: address }), scope), ChargeClient)
      const left = yield* Effect.forkChild(Effect.flip(leaving.submit(chargeFor("leaves", "2026-07"))))
      yield* begun.await
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(reasonOf(yield* Fiber.join(left)), "Closed")
      assert.strictEqual(reasonOf(yield* Effect.flip(leaving.submit(chargeFor("late", "2026-07")))), "Closed")
      while ((yield* Metric.value(ZmqMetrics.events)).occurrences.get("disconnect") === undefined) yield* Effect.sleep("5 millis")
      const client = yield* clientOf({ ...patient, endpoint: address })
      yield* client.submit(chargeFor("stays", "2026-07"))
      yield* gate.open
      while ((yield* countOf(ZmqMetrics.unroutableReplies)) === 0) yield* Effect.sleep("5 millis")
      assert.strictEqual((yield* client.submit(chargeFor("stays too", "2026-07")))._tag, "Succeeded")
    })), 60_000)
})

describe("a client's sockets and descriptors", () => {
  const descriptors = Effect.sync(() => readdirSync("/dev/fd").length)
  for (const [name, layer, sockets] of [
    ["req-rep", ZmqTransport.layerReqRepClient, 16],
    ["router-dealer", ZmqTransport.layerRouterDealerClient, 1],
    ["push-pull", ZmqTransport.layerPushPullClient, 2]
  ] as const) {
    it.live(`are no more after 5,000 time-outs than after the first: ${name}`, () =>
      isolated(Effect.gen(function*() {
        const scope = yield* Scope.make()
        const options = { endpoint: yield* freeAddress, requestTimeout: "5 millis", retry: Schedule.recurs(9), silencesMax: 1, joinMax: 1 } as const
        const client = Context.get(yield* Layer.buildWithScope(layer(options), scope), ChargeClient)
        const open = Effect.map(Metric.value(ZmqMetrics.openSockets), ({ value }) => value)
        const requests = Array.from({ length: 50 }, (_, index) => chargeFor(`c_${index}`, "2026-07"))
        const round = Effect.gen(function*() {
          const errors = yield* Effect.forEach(requests, (request) => Effect.flip(client.submit(request)), { concurrency: "unbounded" })
          assert.deepStrictEqual([...new Set(errors.map(reasonOf))], ["RetriesExhausted"])
          assert.isAtMost(yield* open, sockets)
        })
        yield* round
        const before = yield* descriptors
        while ((yield* countOf(ZmqMetrics.timeouts)) < 5000) yield* round
        yield* Scope.close(scope, Exit.void)
        assert.strictEqual(yield* open, 0)
        // libzmq closes descriptors in a thread of its own.
        while ((yield* descriptors) > before) yield* Effect.sleep("5 millis")
      })), 120_000)
  }
})
