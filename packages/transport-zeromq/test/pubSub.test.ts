import { assert, describe, it } from "@effect/vitest"
import { ChargeClient, ChargeInProgress, type ChargeRequest, LedgerError, Principal } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { MockGateway } from "@purser/testkit/MockGateway"
import { TestPipeline } from "@purser/testkit/TestPipeline"
import { allowKeys, Forwarder, generateKeyPair, type PubSubClientOptions, ZmqMetrics, ZmqTransport } from "@purser/transport-zeromq"
import { Context, Effect, Exit, Fiber, Latch, Layer, Ref, Schedule, Scope } from "effect"
import * as zmq from "zeromq"
import { bare, countOf, freeAddress, isolated, paid, reasonOf, serveOn } from "./support.ts"

const clientOf = (options: PubSubClientOptions) =>
  Effect.map(Layer.build(ZmqTransport.layerPubSubClient(options)), (context) => Context.get(context, ChargeClient))
const patient = { requestTimeout: "60 seconds" } as const
const plain = { customer_id: "c", billing_period: "2026-07", amount_cents: 1000, stripe_customer_id: "cus_1" }
const inProgress = (request: ChargeRequest) => new LedgerError({ reason: new ChargeInProgress({ leaseLeftMs: 15_000 }), chargeKey: request.chargeKey })

describe("pub-sub", () => {
  it.live("every worker sees each request, one charges, and the client gets the outcome", () =>
    Effect.gen(function*() {
      const engine = yield* Effect.map(Layer.build(TestPipeline.layer), (context) => ({
        charge: Context.get(context, ChargeClient).submit,
        payments: (customer: string) => Context.get(context, MockGateway).paymentsOf(customer, "2026-07")
      }))
      const endpoint = [yield* freeAddress, yield* freeAddress, yield* freeAddress]
      const seen = yield* Ref.make(0)
      yield* Effect.forEach(endpoint, (address) =>
        serveOn(ZmqTransport.layerPubSubServer({ endpoint: address }), (request) =>
          Effect.andThen(Ref.update(seen, (n) => n + 1), Effect.catchTag(engine.charge(request), "TransportError", (error) => Effect.die(error)))))
      const client = yield* clientOf({ ...patient, endpoint })
      const customers = Array.from({ length: 60 }, (_, index) => `c_${index}`)
      const outcomes = yield* Effect.forEach(customers, (customer) => client.submit(chargeFor(customer, "2026-07")), { concurrency: "unbounded" })
      assert.deepStrictEqual([...new Set(outcomes.map(({ _tag }) => _tag))], ["Succeeded"])
      while ((yield* Ref.get(seen)) < 180) yield* Effect.sleep("5 millis")
      for (const customer of customers) assert.strictEqual(yield* engine.payments(customer), 1)
    }), 60_000)

  it.live("\"another worker has it\" never comes before the outcome", () =>
    Effect.gen(function*() {
      const endpoint = [yield* freeAddress, yield* freeAddress, yield* freeAddress]
      const told = yield* Ref.make(0)
      const both = yield* Latch.make(false)
      yield* serveOn(ZmqTransport.layerPubSubServer({ endpoint: endpoint[0]! }), (request) => Effect.as(both.await, paid(request)))
      for (const address of endpoint.slice(1)) {
        yield* serveOn(ZmqTransport.layerPubSubServer({ endpoint: address }), (request) =>
          Effect.andThen(Ref.update(told, (n) => n + 1), Effect.fail(inProgress(request))))
      }
      const client = yield* clientOf({ ...patient, endpoint })
      const request = chargeFor("slow", "2026-07")
      const submitted = yield* Effect.forkChild(client.submit(request))
      while ((yield* Ref.get(told)) < 2) yield* Effect.sleep("5 millis")
      // Their answers are on their way, or there: the outcome comes after them.
      yield* Effect.sleep("100 millis")
      assert.isUndefined(submitted.pollUnsafe())
      yield* both.open
      assert.deepStrictEqual(yield* Fiber.join(submitted), paid(request))
    }), 60_000)

  it.live("behind a forwarder the first fact is the answer too", () =>
    Effect.gen(function*() {
      const [frontend, backend] = [yield* freeAddress, yield* freeAddress]
      yield* Forwarder.open({ device: "forwarder", frontend, backend })
      const told = yield* Ref.make(0)
      const go = yield* Latch.make(false)
      yield* serveOn(ZmqTransport.layerPubSubServer({ endpoint: `>${backend}` }), (request) => Effect.as(go.await, paid(request)))
      yield* serveOn(ZmqTransport.layerPubSubServer({ endpoint: `>${backend}` }), (request) =>
        Effect.andThen(Ref.update(told, (n) => n + 1), Effect.fail(inProgress(request))))
      // The forwarder tells of one subscription for both, so that a request may have to be published twice to reach both.
      const client = yield* clientOf({ requestTimeout: "500 millis", retry: Schedule.spaced("10 millis"), endpoint: frontend, workersMin: 2 })
      const requests = ["a", "b", "c"].map((customer) => chargeFor(customer, "2026-07"))
      const submitted = yield* Effect.forkChild(Effect.forEach(requests, (request) => Effect.retry(client.submit(request), { while: ({ isRetryable }) => isRetryable }), { concurrency: 3 }))
      while ((yield* Ref.get(told)) < 3) yield* Effect.sleep("5 millis")
      yield* go.open
      assert.deepStrictEqual(yield* Fiber.join(submitted), requests.map(paid))
      // Both are known by now: what one of them has is never the other's last word.
      const last = chargeFor("d", "2026-07")
      assert.deepStrictEqual(yield* client.submit(last), paid(last))
    }), 60_000)

  it.live("says that another worker has it when that one never answers", () =>
    Effect.gen(function*() {
      const endpoint = [yield* freeAddress, yield* freeAddress]
      yield* serveOn(ZmqTransport.layerPubSubServer({ endpoint: endpoint[0]!, drainTimeout: "10 millis" }), () => Effect.never)
      yield* serveOn(ZmqTransport.layerPubSubServer({ endpoint: endpoint[1]! }), (request) => Effect.fail(inProgress(request)))
      const client = yield* clientOf({ requestTimeout: "1 second", retry: Schedule.recurs(5), endpoint })
      assert.strictEqual((yield* Effect.flip(client.submit(chargeFor("held", "2026-07")))).reason._tag, "ChargeInProgress")
    }), 60_000)

  it.live("a worker that is asked twice while it charges does not say that another one does", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      const first = yield* Latch.make(false)
      const twice = yield* Latch.make(false)
      const calls = yield* Ref.make(0)
      yield* serveOn(ZmqTransport.layerPubSubServer({ endpoint }), (request) =>
        Effect.gen(function*() {
          if ((yield* Ref.updateAndGet(calls, (n) => n + 1)) > 1) {
            yield* twice.open
            return yield* inProgress(request)
          }
          yield* first.await
          return paid(request)
        }))
      const client = yield* clientOf({ ...patient, endpoint })
      const request = chargeFor("twice", "2026-07")
      const both = yield* Effect.forkChild(Effect.all([client.submit(request), client.submit(request)], { concurrency: "unbounded" }))
      yield* twice.await
      yield* first.open
      assert.deepStrictEqual(yield* Fiber.join(both), [paid(request), paid(request)])
    }), 60_000)

  for (const [who, client, worker] of [["binds", "", ""], ["connects to the client", "@", ">"]] as const) {
    it.live(`a worker that ${who} late gets at once what waits`, () =>
      isolated(Effect.gen(function*() {
        const address = yield* freeAddress
        const { submit } = yield* clientOf({ ...patient, endpoint: `${client}${address}`, socket: { reconnectMs: 10, reconnectMaxMs: 50 } })
        const requests = Array.from({ length: 40 }, (_, index) => chargeFor(`c_${index}`, "2026-07"))
        const submitted = yield* Effect.forkChild(Effect.forEach(requests, (request) => submit(request), { concurrency: "unbounded" }))
        yield* Effect.sleep("50 millis")
        yield* serveOn(ZmqTransport.layerPubSubServer({ endpoint: `${worker}${address}` }), (request) => Effect.succeed(paid(request)))
        assert.deepStrictEqual(yield* Fiber.join(submitted), requests.map(paid))
        // No deadline was needed for it.
        assert.strictEqual(yield* countOf(ZmqMetrics.resentRequests), 0)
      })), 60_000)
  }

  it.live("a worker takes over at once when another one goes with what it had", () =>
    isolated(Effect.gen(function*() {
      const endpoint = [yield* freeAddress, yield* freeAddress]
      const begun = yield* Latch.make(false)
      const mayAnswer = yield* Latch.make(false)
      const going = yield* serveOn(ZmqTransport.layerPubSubServer({ endpoint: endpoint[0]!, drainTimeout: "10 millis" }), () => Effect.andThen(begun.open, Effect.never))
      yield* serveOn(ZmqTransport.layerPubSubServer({ endpoint: endpoint[1]! }), (request) => Effect.as(mayAnswer.await, paid(request)))
      const client = yield* clientOf({ ...patient, endpoint })
      const request = chargeFor("c", "2026-07")
      const submitted = yield* Effect.forkChild(client.submit(request))
      yield* begun.await
      yield* Scope.close(going, Exit.void)
      yield* mayAnswer.open
      assert.deepStrictEqual(yield* Fiber.join(submitted), paid(request))
      assert.strictEqual(yield* countOf(ZmqMetrics.resentRequests), 0)
    })), 60_000)

  it.live("publishes again what has no answer at its deadline", () =>
    isolated(Effect.gen(function*() {
      const endpoint = yield* freeAddress
      const deliveries = yield* Ref.make(0)
      yield* serveOn(ZmqTransport.layerPubSubServer({ endpoint, drainTimeout: "10 millis" }), (request) =>
        Effect.flatMap(Ref.updateAndGet(deliveries, (n) => n + 1), (n) => n < 3 ? Effect.never : Effect.succeed(paid(request))))
      const client = yield* clientOf({ endpoint, requestTimeout: "150 millis", retry: Schedule.spaced("10 millis") })
      const request = chargeFor("c", "2026-07")
      assert.deepStrictEqual(yield* client.submit(request), paid(request))
      assert.isAtLeast(yield* Ref.get(deliveries), 3)
      // One of them may be for a worker that was heard of late.
      assert.isAtLeast(yield* countOf(ZmqMetrics.resentRequests), 1)
    })), 60_000)

  it.live("answers plain messages at the acknowledgement socket, with and without a topic", () =>
    isolated(Effect.gen(function*() {
      const [endpoint, ackEndpoint] = [yield* freeAddress, yield* freeAddress]
      const seen = yield* Ref.make<ReadonlyArray<string>>([])
      yield* serveOn(ZmqTransport.layerPubSubServer({ endpoint, ackEndpoint }), (request) =>
        Effect.as(Ref.update(seen, (all) => [...all, request.customerId]), paid(request)))
      const ack = yield* bare(() => new zmq.Pull({ linger: 0 }))
      yield* Effect.promise(() => ack.bind(ackEndpoint))
      const pub = yield* bare(() => new zmq.XPublisher({ linger: 0 }))
      pub.connect(endpoint)
      yield* Effect.promise(() => pub.receive())
      const next = Effect.map(Effect.promise(() => ack.receive()), (frames) => JSON.parse(frames.map(String).join("|")))
      for (const message of [JSON.stringify({ ...plain, seq: 41 }), ["charges", JSON.stringify({ ...plain, seq: 42 })], ["", JSON.stringify({ ...plain, seq: 43 })]]) {
        yield* Effect.promise(() => pub.send(message))
      }
      const acknowledged = [yield* next, yield* next, yield* next]
      assert.sameMembers(acknowledged.map(({ ack_seq }) => ack_seq), [41, 42, 43])
      assert.deepStrictEqual(acknowledged.map(({ status }) => status), ["ok", "ok", "ok"])
      yield* Effect.promise(() => pub.send("not JSON"))
      assert.deepInclude((yield* next).error, { reason: "MalformedMessage", outcome: "not_charged" })
      // A return address is held to the rules of every endpoint.
      yield* Effect.promise(() => pub.send(["tcp://10.0.0.1:1", JSON.stringify({ ...plain, customer_id: "hostile" })]))
      yield* Effect.promise(() => pub.send(JSON.stringify({ ...plain, seq: 44 })))
      assert.strictEqual((yield* next).ack_seq, 44)
      assert.deepStrictEqual(yield* Ref.get(seen), ["c", "c", "c", "c"])
    })), 60_000)

  it.live("with CURVE a listed key is served under its name by each worker, and nobody else", () =>
    Effect.gen(function*() {
      const [fleet, alice, mallory] = [yield* generateKeyPair, yield* generateKeyPair, yield* generateKeyPair]
      const endpoint = [yield* freeAddress, yield* freeAddress]
      const seen = yield* Ref.make<ReadonlyArray<string | null>>([])
      for (const address of endpoint) {
        yield* serveOn(ZmqTransport.layerPubSubServer({ endpoint: address, socket: { curve: { own: fleet, clients: allowKeys({ alice: alice.publicKey }) } } }), (request) =>
          Effect.flatMap(Principal, (principal) => Effect.as(Ref.update(seen, (all) => [...all, principal]), paid(request))))
      }
      const as = (own: typeof alice) => ({ endpoint, requestTimeout: "300 millis", retry: Schedule.recurs(5), socket: { curve: { own, serverKey: fleet.publicKey } } } as const)
      const request = chargeFor("a", "2026-07")
      assert.deepStrictEqual(yield* (yield* clientOf(as(alice))).submit(request), paid(request))
      assert.deepStrictEqual([...new Set(yield* Ref.get(seen))], ["alice"])
      const error = yield* Effect.flip((yield* clientOf(as(mallory))).submit(chargeFor("m", "2026-07")))
      assert.strictEqual(reasonOf(error), "Unauthorized")
      // However often the listed client's request came to a worker before it was answered.
      assert.deepStrictEqual([...new Set(yield* Ref.get(seen))], ["alice"])
    }), 60_000)

  it.live("refuses a return address that workers could not reach", () =>
    Effect.gen(function*() {
      const failing = (options: PubSubClientOptions) => Effect.map(Effect.flip(clientOf(options)), reasonOf)
      assert.strictEqual(yield* failing({ endpoint: "tcp://10.0.0.1:5555", allowPlain: true }), "Closed")
      assert.strictEqual(yield* failing({ returnEndpoint: ">tcp://127.0.0.1:5556" }), "Closed")
      assert.strictEqual(yield* failing({ returnEndpoint: "tcp://10.0.0.1:5556" }), "Unauthorized")
    }), 60_000)
})

describe("pair", () => {
  it.live("is refused outside the process", () =>
    Effect.gen(function*() {
      for (const endpoint of ["tcp://127.0.0.1:5555", "ipc:///tmp/x", "inproc://"]) {
        assert.strictEqual(reasonOf(yield* Effect.flip(Layer.build(ZmqTransport.layerPairClient({ endpoint })))), "Closed")
        assert.strictEqual(reasonOf(yield* Effect.flip(Layer.build(ZmqTransport.layerPairServer({ endpoint })))), "Closed")
      }
    }), 60_000)

  it.live("serves both sides of one layer, and a second client of the same name gets a typed error", () =>
    Effect.gen(function*() {
      const context = yield* Layer.build(ZmqTransport.layerPair({ endpoint: "inproc://shared" }))
      yield* serveOn(Layer.succeedContext(context), (request) => Effect.succeed(paid(request)))
      const request = chargeFor("c", "2026-07")
      assert.deepStrictEqual(yield* Context.get(context, ChargeClient).submit(request), paid(request))
      const second = yield* Effect.map(
        Layer.build(ZmqTransport.layerPairClient({ endpoint: "inproc://shared", requestTimeout: "50 millis", retry: Schedule.recurs(1) })),
        (built) => Context.get(built, ChargeClient)
      )
      assert.strictEqual(reasonOf(yield* Effect.flip(second.submit(request))), "RetriesExhausted")
      const next = chargeFor("d", "2026-07")
      assert.deepStrictEqual(yield* Context.get(context, ChargeClient).submit(next), paid(next))
    }), 60_000)
})
