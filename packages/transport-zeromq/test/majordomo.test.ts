import { assert, describe, it } from "@effect/vitest"
import { ChargeClient, type ChargeHandler, type ChargeRequest } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { Broker, BrokerMetrics, type BrokerOptions, Majordomo, type MajordomoClientOptions, type MajordomoServerOptions, ZmqTransport } from "@purser/transport-zeromq"
import { Context, Effect, Exit, Fiber, Latch, Layer, Ref, Result, Schedule, Schema, Scope } from "effect"
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { fileURLToPath } from "node:url"
import * as zmq from "zeromq"
import { bare, countOf, freeAddress, paid, reasonOf, serveOn } from "./support.ts"

const heartbeatMs = 200
const quick = { heartbeat: heartbeatMs, socket: { reconnectMs: 20, reconnectMaxMs: 50 } } as const
/** Nothing is ever sent again by the client: what is answered was the broker's work. */
const onlyOnce = { requestTimeout: "5 minutes", retry: Schedule.recurs(0) } as const
const insistent = { requestTimeout: "400 millis", retry: Schedule.spaced("20 millis") } as const

const brokerOn = (endpoint: string, options: BrokerOptions = {}) => Broker.open({ ...quick, drainTimeout: 0, ...options, endpoint })
const clientOf = (endpoint: string, options: MajordomoClientOptions) =>
  Effect.map(Layer.build(ZmqTransport.layerMajordomoClient({ ...quick, window: 64, joinMax: 8, ...options, endpoint })), (context) => Context.get(context, ChargeClient))
const workOn = (endpoint: string, handler: ChargeHandler, options: MajordomoServerOptions = {}) =>
  serveOn(ZmqTransport.layerMajordomoServer({ ...quick, ...options, endpoint }), handler)

const until = <E>(condition: Effect.Effect<boolean, E>) => Effect.repeat(condition, { until: (met) => met, schedule: Schedule.spaced("5 millis") })
const workersOf = (broker: Broker["Service"], count: number) => until(Effect.map(broker.figures, ({ workers }) => workers === count))

const program = (name: string) => fileURLToPath(new URL(`programs/${name}`, import.meta.url))
const start = (name: string, ...args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.sync(() => spawn(process.execPath, [program(name), ...args], { stdio: "ignore" })),
    (child) => Effect.sync(() => void child.kill("SIGKILL"))
  )
const signal = (child: ChildProcess, name: NodeJS.Signals) => Effect.sync(() => void child.kill(name))

/** Submits all, and counts the answers. */
const submitAll = Effect.fnUntraced(function*(client: ChargeClient["Service"], count: number) {
  const answered = yield* Ref.make(0)
  const requests = Array.from({ length: count }, (_, index) => chargeFor(`c_${index}`, "2026-07", { amountMinor: 1000 + index }))
  const fiber = yield* Effect.forkChild(
    Effect.forEach(requests, (request) => Effect.tap(client.submit(request), () => Ref.update(answered, (n) => n + 1)), { concurrency: "unbounded" })
  )
  return {
    reaches: (enough: number) => until(Effect.map(Ref.get(answered), (n) => n >= enough)),
    outcomes: Effect.map(Fiber.join(fiber), (outcomes) => assert.deepStrictEqual(outcomes, requests.map(paid)))
  }
})

describe("workers that die or freeze", () => {
  it.live("what a killed worker had goes to the others: the client does not notice", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      const broker = yield* brokerOn(endpoint)
      const client = yield* clientOf(endpoint, onlyOnce)
      const victims = [yield* start("majordomoWorker.ts", endpoint, `${heartbeatMs}`), yield* start("majordomoWorker.ts", endpoint, `${heartbeatMs}`)]
      yield* workersOf(broker, 2)
      const { outcomes, reaches } = yield* submitAll(client, 600)
      yield* reaches(50)
      yield* signal(victims[0]!, "SIGKILL")
      yield* reaches(200)
      yield* start("majordomoWorker.ts", endpoint, `${heartbeatMs}`)
      yield* signal(victims[1]!, "SIGKILL")
      yield* outcomes
    }), 120_000)

  it.live("what a frozen worker had goes to the others; when it wakes it makes itself known and works again", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      const broker = yield* brokerOn(endpoint)
      const client = yield* clientOf(endpoint, onlyOnce)
      const frozen = yield* start("majordomoWorker.ts", endpoint, `${heartbeatMs}`)
      yield* workersOf(broker, 1)
      const { outcomes, reaches } = yield* submitAll(client, 300)
      yield* reaches(50)
      yield* signal(frozen, "SIGSTOP")
      yield* workersOf(broker, 0)
      yield* start("majordomoWorker.ts", endpoint, `${heartbeatMs}`)
      yield* outcomes
      yield* signal(frozen, "SIGCONT")
      yield* workersOf(broker, 2)
      yield* (yield* submitAll(client, 50)).outcomes
    }), 120_000)

  it.live("a job of many heartbeats is not taken for a dead worker", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      const broker = yield* brokerOn(endpoint)
      const client = yield* clientOf(endpoint, onlyOnce)
      const deliveries = yield* Ref.make(0)
      const handler: ChargeHandler = (request) => Effect.as(Effect.andThen(Ref.update(deliveries, (n) => n + 1), Effect.sleep(heartbeatMs * 10)), paid(request))
      yield* workOn(endpoint, handler)
      yield* workOn(endpoint, handler)
      yield* workersOf(broker, 2)
      const request = chargeFor("c_1", "2026-07")
      assert.deepStrictEqual(yield* client.submit(request), paid(request))
      assert.strictEqual(yield* Ref.get(deliveries), 1)
    }), 60_000)
})

describe("leaving", () => {
  it.live("workers that leave while there is work lose nothing, and what they have begun they finish", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      yield* brokerOn(endpoint)
      const client = yield* clientOf(endpoint, onlyOnce)
      const calls = yield* Ref.make(0)
      const handler: ChargeHandler = (request) => Effect.as(Effect.andThen(Ref.update(calls, (n) => n + 1), Effect.sleep("3 millis")), paid(request))
      const { outcomes, reaches } = yield* submitAll(client, 400)
      for (const enough of [50, 100, 150, 200]) {
        const worker = yield* workOn(endpoint, handler, { concurrency: 4, credit: 4 })
        yield* reaches(enough)
        yield* Scope.close(worker, Exit.void)
      }
      yield* workOn(endpoint, handler)
      yield* outcomes
      // No client asks twice here. On a busy machine a worker may fall silent for long enough that its work is given to another one too.
      assert.isAtLeast(yield* Ref.get(calls), 400)
    }), 120_000)

  it.live("what a worker could not do within its drain time goes to another one", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      yield* brokerOn(endpoint)
      const client = yield* clientOf(endpoint, onlyOnce)
      const begun = yield* Latch.make(false)
      const stuck = yield* workOn(endpoint, () => Effect.andThen(begun.open, Effect.never), { drainTimeout: "20 millis" })
      const request = chargeFor("c_1", "2026-07")
      const submitted = yield* Effect.forkChild(client.submit(request))
      yield* begun.await
      yield* Scope.close(stuck, Exit.void)
      yield* workOn(endpoint, (request) => Effect.succeed(paid(request)))
      assert.deepStrictEqual(yield* Fiber.join(submitted), paid(request))
    }), 60_000)

  it.live("a broker that is killed and comes back loses nothing that its clients send again; workers find it by themselves", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      const client = yield* clientOf(endpoint, insistent)
      yield* workOn(endpoint, (request) => Effect.as(Effect.sleep("5 millis"), paid(request)), { concurrency: 8, credit: 8 })
      const { outcomes, reaches } = yield* submitAll(client, 500)
      for (const enough of [50, 200]) {
        const broker = yield* start("broker.ts", endpoint, `${heartbeatMs}`)
        yield* reaches(enough)
        yield* signal(broker, "SIGKILL")
      }
      yield* start("broker.ts", endpoint, `${heartbeatMs}`)
      yield* outcomes
    }), 120_000)

  it.live("a broker that closes lets workers end what they hold, and refuses the rest", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      const scope = yield* Scope.make()
      yield* Scope.provide(brokerOn(endpoint, { drainTimeout: "30 seconds" }), scope)
      const client = yield* clientOf(endpoint, { ...onlyOnce, joinMax: 1 })
      const [begun, gate] = [yield* Latch.make(false), yield* Latch.make(false)]
      yield* workOn(endpoint, (request) => Effect.as(Effect.andThen(begun.open, gate.await), paid(request)))
      const held = chargeFor("held", "2026-07")
      const submitted = yield* Effect.forkChild(client.submit(held))
      yield* begun.await
      const closed = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      const late = yield* Effect.flip(client.submit(chargeFor("late", "2026-07")))
      assert.deepStrictEqual([reasonOf(late), late.outcome], ["PeerUnreachable", "not_charged"])
      yield* gate.open
      assert.deepStrictEqual(yield* Fiber.join(submitted), paid(held))
      yield* Fiber.join(closed)
    }), 60_000)
})

describe("limits", () => {
  it.live("the part of the queue for services without workers, when it is full, is told as Backpressure, and takes requests again when a worker has come", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      const broker = yield* brokerOn(endpoint, { queueMax: 8 })
      const client = yield* clientOf(endpoint, { ...onlyOnce, joinMax: 1 })
      const waiting = ["a", "b"].map((customer) => chargeFor(customer, "2026-07"))
      const submitted = yield* Effect.forkChild(Effect.forEach(waiting, (request) => client.submit(request), { concurrency: "unbounded" }))
      yield* until(Effect.map(broker.figures, (figures) => figures.waiting === 2))
      const error = yield* Effect.flip(client.submit(chargeFor("c", "2026-07")))
      assert.deepStrictEqual([reasonOf(error), error.outcome, error.isRetryable], ["Backpressure", "not_charged", true])
      yield* workOn(endpoint, (request) => Effect.succeed(paid(request)))
      assert.deepStrictEqual(yield* Fiber.join(submitted), waiting.map(paid))
      assert.deepStrictEqual(yield* client.submit(waiting[0]!), paid(waiting[0]!))
    }), 60_000)

  it.live("a client that takes no answers holds up nobody else", () =>
    Effect.gen(function*() {
      const endpoint = `inproc://${randomUUID()}`
      yield* brokerOn(endpoint, { socket: { ...quick.socket, highWaterMark: 2 } })
      yield* workOn(endpoint, (request) => Effect.succeed(paid(request)))
      const before = yield* countOf(BrokerMetrics.unroutableReplies)
      const deaf = yield* bare(() => new zmq.Dealer({ linger: 0, receiveHighWaterMark: 1, sendHighWaterMark: 1000 }))
      deaf.connect(endpoint)
      for (let index = 0; index < 50; index++) yield* Effect.promise(() => deaf.send(["MDPC02", "\x01", "charge", plain("deaf")]))
      const client = yield* clientOf(endpoint, onlyOnce)
      yield* (yield* submitAll(client, 100)).outcomes
      yield* until(Effect.map(countOf(BrokerMetrics.unroutableReplies), (count) => count > before))
    }), 60_000)

  it.live("a worker that takes nothing is dropped, and what it was given goes to another one", () =>
    Effect.gen(function*() {
      const endpoint = `inproc://${randomUUID()}`
      const broker = yield* brokerOn(endpoint, { socket: { ...quick.socket, highWaterMark: 2 } })
      const deaf = yield* bare(() => new zmq.Dealer({ linger: 0, receiveHighWaterMark: 1 }))
      deaf.connect(endpoint)
      yield* Effect.promise(() => deaf.send(["MDPW02", "\x01200", "charge"]))
      yield* workersOf(broker, 1)
      const { outcomes } = yield* submitAll(yield* clientOf(endpoint, { ...onlyOnce, joinMax: 1 }), 60)
      yield* workersOf(broker, 0)
      yield* workOn(endpoint, (request) => Effect.succeed(paid(request)))
      yield* outcomes
    }), 60_000)
})

const plain = (customer_id: string) => JSON.stringify({ customer_id, billing_period: "2026-07", amount_cents: 1000, stripe_customer_id: "cus_1" })
const texts = (frames: ReadonlyArray<Buffer>) => frames.map((frame) => frame.toString("latin1"))

describe("plain peers of 18/MDP", () => {
  it.live("a client that sends the plain form is served, and a worker that knows no credit gets one request at a time", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      yield* brokerOn(endpoint)
      const [client, worker] = [yield* bare(() => new zmq.Dealer({ linger: 0 })), yield* bare(() => new zmq.Dealer({ linger: 0 }))]
      for (const socket of [client, worker]) socket.connect(endpoint)
      const receive = (socket: zmq.Dealer) => Effect.map(Effect.promise(() => socket.receive()), texts)
      const beyondHeartbeats = Effect.repeat(receive(worker), { until: (frames) => frames[1]?.[0] !== "\x05" })
      for (const customer of ["a", "b"]) yield* Effect.promise(() => client.send(["MDPC02", "\x01", "charge", plain(customer)]))
      yield* Effect.promise(() => worker.send(["MDPW02", "\x01", "charge"]))
      const tokens = new Set<string>()
      for (const customer of ["a", "b"]) {
        const [header, command, token, delimiter, body] = yield* beyondHeartbeats
        assert.deepStrictEqual([header, command, delimiter, JSON.parse(body!).customer_id], ["MDPW02", "\x02", "", customer])
        assert.match(token!, /^[0-9a-f-]{36}\.1$/)
        tokens.add(token!)
        yield* Effect.promise(() => worker.send(["MDPW02", "\x03", token!, "", "part"]))
        yield* Effect.promise(() => worker.send(["MDPW02", "\x04", token!, "", "end"]))
        assert.deepStrictEqual(yield* receive(client), ["MDPC02", "\x02", "charge", "part"])
        assert.deepStrictEqual(yield* receive(client), ["MDPC02", "\x03", "charge", "end"])
      }
      assert.strictEqual(tokens.size, 2)
    }), 60_000)

  it.live("a plain client is answered by our worker in one final message, also through a REQ socket", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      yield* brokerOn(endpoint)
      yield* workOn(endpoint, (request: ChargeRequest) => Effect.succeed(paid(request)))
      for (const make of [() => new zmq.Dealer({ linger: 0 }), () => new zmq.Request({ linger: 0 })]) {
        const client = yield* bare<zmq.Dealer | zmq.Request>(make)
        client.connect(endpoint)
        yield* Effect.promise(() => client.send(["MDPC02", "\x01", "charge", plain("a")]))
        const [header, command, service, body] = texts(yield* Effect.promise(() => client.receive()))
        assert.deepStrictEqual([header, command, service, JSON.parse(body!).status], ["MDPC02", "\x03", "charge", "ok"])
      }
    }), 60_000)

  it.live("a worker that the broker has forgotten, or whose requests were lost on the way, makes itself known by another socket", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      const broker = yield* bare(() => new zmq.Router({ linger: 0, mandatory: true }))
      yield* Effect.promise(() => broker.bind(endpoint))
      yield* workOn(endpoint, (request) => Effect.succeed(paid(request)), { credit: 7 })
      const ready = Effect.repeat(Effect.map(Effect.promise(() => broker.receive()), texts), { until: (frames) => frames[2]?.[0] === "\x01" })
      const ids = new Set<string>()
      for (const news of [["MDPW02", "\x06"], ["MDPW02", "\x053"], ["MDPW02", "\x06"]]) {
        const [id, header, command, service] = yield* ready
        assert.deepStrictEqual([header, command, service], ["MDPW02", "\x017", "charge"])
        ids.add(id!)
        yield* Effect.promise(() => broker.send([id!, ...news]))
      }
      assert.strictEqual(ids.size, 3)
    }), 60_000)

  it.live("what is past the deadline that its client named is never given", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      const broker = yield* brokerOn(endpoint)
      const before = yield* countOf(BrokerMetrics.expired)
      const client = yield* bare(() => new zmq.Dealer({ linger: 0 }))
      client.connect(endpoint)
      yield* Effect.promise(() => client.send(["MDPC02", "\x0150", "charge", plain("expired")]))
      yield* until(Effect.map(countOf(BrokerMetrics.expired), (count) => count > before))
      const seen = yield* Ref.make<ReadonlyArray<string>>([])
      yield* workOn(endpoint, (request) => Effect.as(Ref.update(seen, (all) => [...all, request.customerId]), paid(request)))
      yield* workersOf(broker, 1)
      yield* Effect.promise(() => client.send(["MDPC02", "\x01", "charge", plain("next")]).then(() => client.receive()))
      assert.deepStrictEqual(yield* Ref.get(seen), ["next"])
    }), 60_000)

  it.live("what is none of the protocol is counted and not passed on, and the neighbours are served on", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      yield* brokerOn(endpoint)
      yield* workOn(endpoint, (request) => Effect.succeed(paid(request)))
      const before = yield* countOf(BrokerMetrics.malformed)
      const hostile = yield* bare(() => new zmq.Dealer({ linger: 0 }))
      hostile.connect(endpoint)
      const bad = [[""], ["MDPC02"], ["MDPC02", ""], ["MDPC02", "\x01", "charge"], ["MDPC02", "\x01", "", "x"], ["MDPC01", "\x01", "charge", "x"], ["MDPW02", "\x01"], ["MDPW02", "\x04", "t"], ["MDPW02", "\x09"], ["", "", "", ""], ["x"]]
      for (const frames of bad) yield* Effect.promise(() => hostile.send(frames))
      yield* until(Effect.map(countOf(BrokerMetrics.malformed), (count) => count === before + bad.length))
      yield* (yield* submitAll(yield* clientOf(endpoint, onlyOnce), 20)).outcomes
    }), 60_000)
})

class SoldOut extends Schema.TaggedError<SoldOut>("test/SoldOut")("SoldOut", { item: Schema.String }) {}

describe("services of any messages", () => {
  const quote = { request: Schema.Struct({ item: Schema.String, at: Schema.Date }), reply: Schema.Struct({ total: Schema.BigInt }), error: SoldOut }
  const greet = { request: Schema.String, reply: Schema.String }
  const at = new Date(0)

  it.live("are found by their names at one broker, with values, errors and refusals", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      const broker = yield* brokerOn(endpoint, { queueMax: 1 })
      const common = { ...quick, ...onlyOnce, endpoint, joinMax: 1 }
      const quotes = yield* Majordomo.client({ ...common, ...quote, service: "quote" })
      const greetings = yield* Majordomo.client({ ...common, ...greet, service: "greet" })
      const asked = yield* Effect.forkChild(quotes.request({ item: "apple", at }))
      yield* until(Effect.map(broker.figures, ({ waiting }) => waiting === 1))
      const full = yield* Effect.flip(greetings.request("early"))
      assert.deepStrictEqual([full.reason._tag, full.outcome], ["Backpressure", "not_charged"])
      yield* Effect.forkChild(Majordomo.serve({ ...common, ...greet, service: "greet" }, (name) => Effect.succeed(`hello ${name}`)))
      yield* Effect.forkChild(Majordomo.serve({ ...common, ...quote, service: "quote" }, ({ at, item }) =>
        item === "pear" ? Effect.fail(new SoldOut({ item })) : Effect.succeed({ total: BigInt(at.getTime()) + 7n })))
      assert.deepStrictEqual(yield* Fiber.join(asked), { total: 7n })
      assert.strictEqual(yield* greetings.request("you"), "hello you")
      const [pear, apple] = [yield* Effect.flip(quotes.request({ item: "pear", at })), yield* quotes.requestAll([{ item: "apple", at }])]
      assert.deepStrictEqual(pear, new SoldOut({ item: "pear" }))
      assert.deepStrictEqual(apple, [Result.succeed({ total: 7n })])
    }), 60_000)

  it("the example runs", () => {
    const output = execFileSync(process.execPath, [fileURLToPath(new URL("../examples/majordomo.ts", import.meta.url))], { encoding: "utf8", timeout: 60_000 })
    assert.match(output, /\{ totalMinor: 5700 \}\n$/)
  }, 90_000)
})
