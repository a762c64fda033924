/** Who comes to a broker without being a client or a worker of ours: thieves of work, plain senders, noise. */
import { assert, describe, it } from "@effect/vitest"
import { ChargeClient, type DeadLetter } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { allowKeys, Broker, BrokerMetrics, generateKeyPair, ZmqTransport } from "@purser/transport-zeromq"
import { Context, Effect, Layer, Redacted, Schedule } from "effect"
import * as zmq from "zeromq"
import { bare, bareRequester, countOf, freeAddress, isolated, paid, serveOn } from "./support.ts"

const until = <E>(condition: Effect.Effect<boolean, E>) => Effect.repeat(condition, { until: (met) => met, schedule: Schedule.spaced("5 millis") })
const letterBox = () => {
  const letters: Array<DeadLetter> = []
  return { letters, deadLetters: (letter: DeadLetter) => Effect.sync(() => void letters.push(letter)) }
}
const texts = (letters: ReadonlyArray<DeadLetter>) => letters.map(({ body }) => Buffer.from(body).toString("latin1"))
const bill = (customer: string, seq: number) =>
  JSON.stringify({ customer_id: customer, billing_period: "2026-07", amount_cents: 1000, stripe_customer_id: `cus_${customer}`, seq })
const receive = (socket: zmq.Dealer) => Effect.promise(() => socket.receive().then((frames) => frames.map(String)))

describe("a broker with CURVE", () => {
  it.live("gives no work to a producer that says READY, however it asks for it", () =>
    isolated(Effect.gen(function*() {
      const [fleet, alice, mallory] = [yield* generateKeyPair, yield* generateKeyPair, yield* generateKeyPair]
      const endpoint = yield* freeAddress
      const { deadLetters, letters } = letterBox()
      const curve = { own: fleet, clients: allowKeys({ alice: alice.publicKey, mallory: mallory.publicKey }) }
      const broker = yield* Broker.open({ endpoint, deadLetters, drainTimeout: 0, heartbeat: "1 minute", socket: { curve } })
      const client = ZmqTransport.layerMajordomoClient({ endpoint, requestTimeout: "30 seconds", socket: { curve: { own: alice, serverKey: fleet.publicKey } } })
      // Without a seal.
      const thief = yield* bare(() => new zmq.Dealer({
        linger: 0, curvePublicKey: mallory.publicKey, curveSecretKey: Redacted.value(mallory.secretKey), curveServerKey: fleet.publicKey
      }))
      thief.connect(endpoint)
      yield* Effect.promise(() => thief.send(["MDPW02", "\u0001256", "charge"]))
      // With its own.
      yield* serveOn(ZmqTransport.layerMajordomoServer({ endpoint, socket: { curve: { own: mallory, serverKey: fleet.publicKey } } }), () => Effect.die("stolen"))
      yield* until(Effect.map(countOf(BrokerMetrics.refusedWorkers), (count) => count >= 2))
      assert.strictEqual((yield* broker.figures).workers, 0)
      yield* serveOn(ZmqTransport.layerMajordomoServer({ endpoint, socket: { curve } }), (request) => Effect.succeed(paid(request)))
      yield* until(Effect.map(broker.figures, ({ workers }) => workers === 1))
      const request = chargeFor("honest", "2026-07")
      assert.deepStrictEqual(yield* Context.get(yield* Layer.build(client), ChargeClient).submit(request), paid(request))
      yield* until(Effect.sync(() => letters.length === 2))
      assert.deepStrictEqual([...new Set(letters.map(({ reason, transport }) => `${transport} ${reason}`))], ["majordomo Unauthorized"])
      assert.deepStrictEqual(new Set(letters.map(({ principal }) => principal)), new Set([null, "mallory"]))
    })), 60_000)
})

describe("a broker", () => {
  it.live("answers what it cannot read, keeps it, and serves the others on", () =>
    isolated(Effect.gen(function*() {
      const endpoint = yield* freeAddress
      const { deadLetters, letters } = letterBox()
      yield* Broker.open({ endpoint, deadLetters, drainTimeout: 0 })
      yield* serveOn(ZmqTransport.layerMajordomoServer({ endpoint }), (request) => Effect.succeed(paid(request)))
      const dealer = yield* bare(() => new zmq.Dealer({ linger: 0 }))
      dealer.connect(endpoint)
      const noise: ReadonlyArray<Array<string | Uint8Array>> = [
        [Uint8Array.of(0, 255, 7)], [""], ["MDPC02"], ["MDPC02", "\u0009", "charge", "{}"], ["MDPC01", "charge", bill("old", 1)], ["{}", "{}"], ["MDPW02", "\u0001"]
      ]
      for (const frames of noise) {
        yield* Effect.promise(() => dealer.send(frames))
        const answer = JSON.parse((yield* receive(dealer)).at(-1)!)
        assert.deepStrictEqual([answer.status, answer.error.reason, answer.error.outcome], ["error", "MalformedMessage", "not_charged"])
      }
      const ask = yield* bareRequester(endpoint)
      assert.strictEqual(JSON.parse((yield* ask("MDPC02"))[0]!).error.reason, "MalformedMessage")
      assert.strictEqual(JSON.parse((yield* ask(bill("next", 2)))[0]!).charge_id, "ch_next")
      yield* until(Effect.sync(() => letters.length === noise.length + 1))
      assert.deepStrictEqual(texts(letters), [...noise.map((frames) => frames.map((frame) => Buffer.from(frame).toString("latin1")).join("")), "MDPC02"])
      assert.strictEqual(yield* countOf(BrokerMetrics.malformed), noise.length + 1)
    })), 60_000)

  it.live("serves plain JSON without a header, and answers in its envelope", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      yield* Broker.open({ endpoint, drainTimeout: 0 })
      yield* serveOn(ZmqTransport.layerMajordomoServer({ endpoint }), (request) => Effect.succeed(paid(request)))
      const dealer = yield* bare(() => new zmq.Dealer({ linger: 0 }))
      dealer.connect(endpoint)
      const read = (text: string | undefined) => {
        const { ack_seq, charge_id, status } = JSON.parse(text ?? "{}")
        return [status, charge_id, ack_seq]
      }
      yield* Effect.promise(() => dealer.send(bill("bare", 1)))
      const bareAnswer = yield* receive(dealer)
      assert.deepStrictEqual([bareAnswer.length, ...read(bareAnswer[0])], [1, "ok", "ch_bare", 1])
      yield* Effect.promise(() => dealer.send(["", bill("delimited", 2)]))
      const [delimiter, answer, ...more] = yield* receive(dealer)
      assert.deepStrictEqual([delimiter, ...read(answer), more.length], ["", "ok", "ch_delimited", 2, 0])
      const ask = yield* bareRequester(endpoint)
      for (const [customer, seq] of [["first", 3], ["second", 4]] as const) {
        const frames = yield* ask(bill(customer, seq))
        assert.deepStrictEqual([frames.length, ...read(frames[0])], [1, "ok", `ch_${customer}`, seq])
      }
      assert.strictEqual(JSON.parse((yield* ask("{\"customer_id\":7}"))[0]!).error.reason, "MalformedMessage")
    }), 60_000)

  it.live("refuses a plain request in the plain form when its queue is full", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      const broker = yield* Broker.open({ endpoint, drainTimeout: 0, queueMax: 1 })
      const dealer = yield* bare(() => new zmq.Dealer({ linger: 0 }))
      dealer.connect(endpoint)
      yield* Effect.promise(() => dealer.send(bill("waits", 1)))
      yield* until(Effect.map(broker.figures, ({ waiting }) => waiting === 1))
      const ask = yield* bareRequester(endpoint)
      const { ack_seq, error } = JSON.parse((yield* ask(bill("late", 2)))[0]!)
      assert.deepStrictEqual([error.reason, ack_seq], ["Backpressure", 2])
    }), 60_000)
})
