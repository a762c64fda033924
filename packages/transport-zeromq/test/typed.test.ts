/** Publishers, subscribers and pairs for messages of any schema; and the examples, which run. */
import { assert, describe, it } from "@effect/vitest"
import { Pair, PubSub, type Received } from "@purser/transport-zeromq"
import { Effect, Exit, Fiber, Queue, Result, Schema, Scope, Stream } from "effect"
import { execFileSync } from "node:child_process"
import { randomUUID } from "node:crypto"
import { fileURLToPath } from "node:url"
import * as zmq from "zeromq"
import { networks } from "./feedSupport.ts"
import { bare, freeAddress, reasonOf } from "./support.ts"

const Price = Schema.Struct({ plan: Schema.String, since: Schema.DateFromString, amountMinor: Schema.Int })
const price = (amountMinor: number) => ({ plan: "team", since: new Date(1_780_000_000_000), amountMinor })
const quick = { reconnectMs: 10, reconnectMaxMs: 50 } as const

/** What a subscriber gets, as it comes. */
const listen = Effect.fnUntraced(function*<A>(stream: Stream.Stream<Received<A>, unknown>) {
  const received = yield* Queue.unbounded<Received<A>>()
  yield* Effect.forkScoped(Stream.runForEach(stream, (message) => Queue.offer(received, message)))
  return received
})

/** Publishes until the subscriber has heard something. */
const untilHeard = Effect.fnUntraced(function*<A>(received: Queue.Dequeue<Received<A>>, say: Effect.Effect<unknown, unknown>) {
  while ((yield* Queue.size(received)) === 0) yield* Effect.andThen(say, Effect.sleep("5 millis"))
  yield* Effect.sleep("50 millis")
  yield* Queue.clear(received)
})

describe("PubSub for any schema", () => {
  for (const [network, addresses] of Object.entries(networks)) {
    it.live(`over ${network} brings messages of the topics that are wanted, in order, as values`, () =>
      Effect.gen(function*() {
        const { endpoint } = yield* addresses
        const { publish } = yield* PubSub.publisher({ endpoint, schema: Price })
        const eur = yield* listen(PubSub.subscribe({ endpoint, schema: Price, topics: ["eur"], socket: quick }))
        const all = yield* listen(PubSub.subscribe({ endpoint, schema: Price, socket: quick }))
        yield* untilHeard(eur, publish("eur", price(1)))
        yield* untilHeard(all, publish("warm", price(1)))
        for (const n of [1, 2, 3]) yield* Effect.andThen(publish("usd", price(n)), publish("eur", price(10 * n)))
        const message = (topic: string, n: number) => ({ _tag: "Message" as const, topic, message: price(n) })
        assert.deepStrictEqual(yield* Effect.forEach([1, 2, 3], () => Queue.take(eur)), [10, 20, 30].map((n) => message("eur", n)))
        assert.deepStrictEqual(
          yield* Effect.forEach([1, 2, 3, 4, 5, 6], () => Queue.take(all)),
          [1, 2, 3].flatMap((n) => [message("usd", n), message("eur", 10 * n)])
        )
      }), 60_000)
  }

  it.live("tells how many messages a slow reader missed, and that a new publisher began", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      const open = Effect.gen(function*() {
        const scope = yield* Scope.fork(yield* Effect.scope)
        return { scope, publisher: yield* Scope.provide(PubSub.publisher({ endpoint, schema: Price }), scope) }
      })
      const first = yield* open
      const pull = yield* Stream.toPull(PubSub.subscribe({ endpoint, schema: Price, bufferMax: 5, socket: quick }).pipe(Stream.rechunk(1)))
      const next = Effect.map(pull, ([received]) => received)
      const heard = yield* Effect.forkChild(next)
      while (heard.pollUnsafe() === undefined) yield* Effect.andThen(first.publisher.publish("t", price(0)), Effect.sleep("5 millis"))
      const witness = yield* listen(PubSub.subscribe({ endpoint, schema: Price, socket: quick }))
      yield* untilHeard(witness, first.publisher.publish("t", price(0)))
      for (let n = 1; n <= 100; n++) yield* first.publisher.publish("t", price(n))
      // What the witness has, has reached the slow reader's socket too.
      for (let n = 1; n <= 100; n++) yield* Queue.take(witness)
      yield* Effect.sleep("50 millis")
      const seen: Array<Received<unknown>> = []
      while (!seen.some((received) => received._tag === "Message" && (received.message as typeof Price.Type).amountMinor === 100)) seen.push(yield* next)
      const missed = seen.filter((received) => received._tag === "Missed")
      assert.isAtLeast(missed.length, 1)
      assert.isAbove(missed.reduce((sum, { count }) => sum + (count ?? 0), 0), 50)
      yield* Scope.close(first.scope, Exit.void)
      const second = yield* open
      const begun = yield* Effect.forkChild(next)
      while (begun.pollUnsafe() === undefined) yield* Effect.andThen(second.publisher.publish("t", price(0)), Effect.sleep("5 millis"))
      assert.deepStrictEqual(yield* Fiber.join(begun), { _tag: "Missed", topic: "t", count: null })
    }), 60_000)

  it.live("joins what is published together, keeps its order over all topics, and loses nothing of it when the publisher closes", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      const scope = yield* Scope.fork(yield* Effect.scope)
      const { publish } = yield* Scope.provide(PubSub.publisher({ endpoint, schema: Schema.Int }), scope)
      const plain = yield* bare(() => new zmq.Subscriber({ linger: 0, reconnectInterval: 10 }))
      plain.connect(endpoint)
      plain.subscribe("a", "b", "end")
      const received = yield* listen(PubSub.subscribe({ endpoint, schema: Schema.Int, socket: quick }))
      yield* untilHeard(received, publish("warm", 0))
      // The other subscription is there too when its first message is.
      const asking = yield* Effect.forkChild(Effect.forever(Effect.andThen(publish("end", 0), Effect.sleep("5 millis"))))
      yield* Effect.promise(() => plain.receive())
      yield* Fiber.interrupt(asking)
      yield* publish("end", 1)
      while ((JSON.parse(String((yield* Effect.promise(() => plain.receive()))[1])) as { readonly body: number }).body !== 1);
      yield* Effect.sleep("50 millis")
      yield* Queue.clear(received)

      const numbers = Array.from({ length: 300 }, (_, index) => index)
      yield* Effect.forEach(numbers, (n) => publish("a", n), { discard: true })
      yield* Effect.andThen(publish("b", 1), publish("a", 300))
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(reasonOf(yield* Effect.flip(publish("a", 301))), "Closed")
      const frames = yield* Effect.forEach([1, 2, 3, 4, 5], () => Effect.promise(() => plain.receive()))
      const texts = frames.map(([topic, text]) => [String(topic), JSON.parse(String(text)) as { readonly n: number; readonly bodies?: ReadonlyArray<number>; readonly body?: number }] as const)
      assert.deepStrictEqual(
        texts.map(([topic, { bodies, body, n }]) => [topic, n, bodies?.length ?? body]),
        [["a", 1, 128], ["a", 129, 128], ["a", 257, 44], ["b", 1, 1], ["a", 301, 300]]
      )
      const got = yield* Effect.forEach(Array.from({ length: 302 }), () => Queue.take(received))
      assert.deepStrictEqual(got, [...numbers.map((n) => ["a", n] as const), ["b", 1] as const, ["a", 300] as const].map(([topic, message]) => ({ _tag: "Message" as const, topic, message })))
    }), 60_000)

  it.live("counts what it missed of a frame, and calls an envelope unreadable that holds nothing", () =>
    Effect.gen(function*() {
      const publisher = yield* bare(() => new zmq.Publisher({ linger: 0 }))
      const endpoint = yield* freeAddress
      yield* Effect.promise(() => publisher.bind(endpoint))
      const say = (envelope: object) => Effect.promise(() => publisher.send(["t", JSON.stringify({ v: 1, epoch: "e", ...envelope })]))
      const received = yield* listen(PubSub.subscribe({ endpoint, schema: Schema.Int, socket: quick }))
      yield* untilHeard(received, say({ n: 1, body: 0 }))
      yield* say({ n: 2, bodies: [1, 2] })
      yield* say({ n: 9, bodies: [3, "four"] })
      yield* say({ n: null, bodies: [5, 6] })
      yield* say({ n: 11, bodies: [] })
      yield* say({ n: 11.5, body: 7 })
      yield* say({ n: 11, body: 8 })
      const got = yield* Effect.forEach(Array.from({ length: 10 }), () => Queue.take(received))
      assert.deepStrictEqual(
        got.map((one) => one._tag === "Message" ? one.message : one._tag === "Missed" ? `missed ${one.count}` : one._tag),
        [1, 2, "missed 5", 3, "Unreadable", 5, 6, "Unreadable", "Unreadable", 8]
      )
    }), 60_000)

  it.live("refuses what the schema refuses, on either side", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      const { publish } = yield* PubSub.publisher({ endpoint, schema: Schema.Int })
      assert.strictEqual(reasonOf(yield* Effect.flip(publish("t", 1.5))), "MalformedMessage")
      const received = yield* listen(PubSub.subscribe({ endpoint, schema: Schema.Int.check(Schema.isLessThan(10)), socket: quick }))
      yield* untilHeard(received, publish("t", 1))
      yield* publish("t", 11)
      assert.deepInclude(yield* Queue.take(received), { _tag: "Unreadable", topic: "t" })
      yield* publish("t", 3)
      assert.deepStrictEqual(yield* Queue.take(received), { _tag: "Message", topic: "t", message: 3 })
      const foreign = yield* bare(() => new zmq.Publisher({ linger: 0 }))
      const at = yield* freeAddress
      yield* Effect.promise(() => foreign.bind(at))
      const strange = yield* listen(PubSub.subscribe({ endpoint: at, schema: Schema.Int, socket: quick }))
      while ((yield* Queue.size(strange)) === 0) yield* Effect.andThen(Effect.promise(() => foreign.send(["t", "not JSON"])), Effect.sleep("5 millis"))
      assert.deepInclude(yield* Queue.take(strange), { _tag: "Unreadable", topic: "t" })
    }), 60_000)
})

describe("Pair for any schema", () => {
  it.live("carries values both ways, in either order of opening, and refuses what a schema refuses", () =>
    Effect.gen(function*() {
      const endpoint = `inproc://${randomUUID()}`
      const second = yield* Pair.open({ endpoint, attach: "connect", send: Schema.Int, receive: Price })
      const first = yield* Pair.open({ endpoint, attach: "bind", send: Price, receive: Schema.Int.check(Schema.isLessThan(10)) })
      for (const n of [1, 2]) yield* Effect.andThen(first.send(price(n)), second.send(n))
      yield* second.send(11)
      assert.deepStrictEqual(yield* Stream.runCollect(Stream.take(second.messages, 2)), [1, 2].map((n) => Result.succeed(price(n))))
      const got = yield* Stream.runCollect(Stream.take(first.messages, 3))
      assert.deepStrictEqual(got.map((message) => Result.isSuccess(message) ? message.success : reasonOf(message.failure)), [1, 2, "MalformedMessage"])
    }), 60_000)

  it.live("is Backpressure when nobody is at the other end, and is refused outside the process", () =>
    Effect.gen(function*() {
      const alone = yield* Pair.open({ endpoint: `inproc://${randomUUID()}`, attach: "bind", send: Schema.Int, receive: Schema.Int, sendTimeoutMs: 10 })
      assert.strictEqual(reasonOf(yield* Effect.flip(alone.send(1))), "Backpressure")
      assert.strictEqual(reasonOf(yield* Effect.flip(Pair.open({ endpoint: "tcp://127.0.0.1:5", attach: "bind", send: Schema.Int, receive: Schema.Int }))), "Closed")
    }), 60_000)
})

describe("examples", () => {
  const outputs: Record<string, string> = {
    "pub-sub.ts": "Message eur 1900\nMessage eur 1900\n",
    "pair.ts": "42\n3\n",
    "event-feed.ts": "State 1 cust_123 - claimed\nEvent 2 cust_123 seat claimed\n"
  }
  for (const [name, expected] of Object.entries(outputs)) {
    it(`${name} runs`, () => {
      const file = fileURLToPath(new URL(`../examples/${name}`, import.meta.url))
      assert.strictEqual(execFileSync(process.execPath, [file], { encoding: "utf8", timeout: 60_000 }), expected)
    }, 90_000)
  }
})
