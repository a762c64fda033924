import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { PushPull, ReqRep, RouterDealer, ZmqMetrics } from "@purser/transport-zeromq"
import { Effect, Fiber, FileSystem, Metric, Ref, Result, Schedule, Schema } from "effect"
import { randomUUID } from "node:crypto"
import * as zmq from "zeromq"
import { bare, freePort, reasonOf } from "./support.ts"

class Refused extends Schema.TaggedError<Refused>("test/Refused")("Refused", { why: Schema.String, at: Schema.Date }) {}

/** Values that JSON does not have: dates and big integers. */
const quotes = {
  request: Schema.Struct({ item: Schema.String, count: Schema.BigInt, at: Schema.Date }),
  reply: Schema.Struct({ total: Schema.BigInt, validUntil: Schema.Date }),
  error: Refused
}
type Quote = typeof quotes.request.Type

const at = new Date(0)
const ask = (item: string, count = 2n): Quote => ({ item, count, at })
const priced = ({ count }: Quote) => ({ total: count * 100n, validUntil: new Date(86_400_000) })
const handle = (request: Quote) =>
  request.item === "dies" ? Effect.die("defect")
    : request.item === "refused" ? Effect.fail(new Refused({ why: "sold out", at }))
    : request.item === "slow" ? Effect.as(Effect.sleep("5 millis"), priced(request))
    : Effect.succeed(priced(request))

const patterns = { "req-rep": ReqRep, "router-dealer": RouterDealer, "push-pull": PushPull } as const
const endpoints = {
  inproc: Effect.sync(() => `inproc://service-${randomUUID()}`),
  ipc: Effect.map(Effect.flatMap(FileSystem.FileSystem, (fs) => fs.makeTempDirectoryScoped()), (folder) => `ipc://${folder}/s`),
  tcp: Effect.map(freePort, (port) => `tcp://127.0.0.1:${port}`)
}
const patient = { requestTimeout: "30 seconds", retry: Schedule.recurs(1) } as const

for (const [name, pattern] of Object.entries(patterns)) {
  describe(`a service over ${name}`, () => {
    for (const [transport, makeEndpoint] of Object.entries(endpoints)) {
      it.live(`carries what the schemas say: ${transport}`, () =>
        Effect.gen(function*() {
          const endpoint = yield* makeEndpoint
          yield* Effect.forkChild(pattern.serve({ ...quotes, endpoint }, handle))
          const { request, requestAll } = yield* pattern.client({ ...quotes, endpoint, ...patient })
          assert.deepStrictEqual(yield* request(ask("apple")), priced(ask("apple")))
          assert.deepStrictEqual(yield* Effect.flip(request(ask("refused"))), new Refused({ why: "sold out", at }))
          const many = Array.from({ length: 300 }, (_, index) => ask(index % 50 === 0 ? "slow" : "apple", BigInt(index)))
          const singly = yield* Effect.forEach(many, request, { concurrency: "unbounded" })
          assert.deepStrictEqual(singly, many.map(priced))
          const together = yield* requestAll([...many, ask("refused")])
          assert.deepStrictEqual(together.slice(0, -1), many.map((one) => Result.succeed(priced(one))))
          assert.deepStrictEqual(together[300], Result.fail(new Refused({ why: "sold out", at })))
          assert.deepStrictEqual(yield* requestAll([]), [])
        }).pipe(Effect.provide(NodeServices.layer)), 60_000)
    }

    it.live("says that nobody knows what a handler did that died, and works on", () =>
      Effect.gen(function*() {
        const endpoint = yield* endpoints.tcp
        yield* Effect.forkChild(pattern.serve({ ...quotes, endpoint }, handle))
        const { request } = yield* pattern.client({ ...quotes, endpoint, requestTimeout: "30 seconds", retry: Schedule.recurs(0) })
        const error = yield* Effect.flip(request(ask("dies")))
        assert.deepStrictEqual([reasonOf(error), error._tag === "TransportError" && error.outcome], ["PeerLost", "unknown"])
        assert.deepStrictEqual(yield* request(ask("apple")), priced(ask("apple")))
      }), 60_000)

    it.live("refuses what is too long before it is sent, and joins long ones so that a frame is not", () =>
      Effect.gen(function*() {
        const endpoint = yield* endpoints.tcp
        const echo = { request: Schema.String, reply: Schema.Int }
        yield* Effect.forkChild(pattern.serve({ ...echo, endpoint }, (text) => Effect.succeed(text.length)))
        const { request, requestAll } = yield* pattern.client({ ...echo, endpoint, ...patient })
        assert.strictEqual(reasonOf(yield* Effect.flip(request("€".repeat(400_000)))), "MalformedMessage")
        const long = Array.from({ length: 20 }, () => "€".repeat(200_000))
        assert.deepStrictEqual(yield* requestAll(["€".repeat(400_000), ...long]).pipe(Effect.map((all) => all.slice(1))), long.map(({ length }) => Result.succeed(length)))
      }), 60_000)
  })
}

describe("a plain push with an acknowledgement", () => {
  it.live("is acknowledged when its worker is done with it, and pushed again when the worker leaves with it", () =>
    Effect.gen(function*() {
      const endpoint = yield* endpoints.tcp
      const mail = { request: Schema.Struct({ to: Schema.String }), reply: Schema.Void }
      const sent = yield* Ref.make<ReadonlyArray<string>>([])
      const { request } = yield* PushPull.client({ ...mail, endpoint, requestTimeout: "200 millis", retry: Schedule.spaced("10 millis"), socket: { reconnectMs: 10 } })
      const pushed = yield* Effect.forkChild(request({ to: "ada" }))
      yield* Effect.scoped(Effect.gen(function*() {
        const pull = yield* bare(() => new zmq.Pull({ linger: 0 }))
        yield* Effect.promise(() => pull.bind(endpoint))
        yield* Effect.promise(() => pull.receive())
      }))
      yield* Effect.forkChild(PushPull.serve({ ...mail, endpoint }, ({ to }) => Ref.update(sent, (all) => [...all, to])))
      yield* Fiber.join(pushed)
      assert.include(yield* Ref.get(sent), "ada")
    }), 60_000)
})

describe("a service's server", () => {
  it.live("answers each request of a hostile frame, or refuses the frame, and serves its neighbours", () =>
    Effect.gen(function*() {
      const endpoint = yield* endpoints.tcp
      yield* Effect.forkChild(RouterDealer.serve({ ...quotes, endpoint }, handle))
      const dealer = yield* bare(() => new zmq.Dealer({ linger: 0 }))
      dealer.connect(endpoint)
      const exchange = (text: string) => Effect.map(Effect.promise(() => dealer.send(text).then(() => dealer.receive())), (frames) => JSON.parse(String(frames[0])).items)
      for (const text of ["?", "[]", "{}", `{"v":2,"items":[]}`, `{"v":1,"items":{}}`]) {
        const [item] = yield* exchange(text)
        assert.deepStrictEqual([item.id, item.body.refused.reason._tag], ["", "MalformedMessage"], text)
      }
      const body = { item: "apple", count: "2", at: at.toISOString() }
      const items = yield* exchange(JSON.stringify({ v: 1, client: "x", items: [
        { id: "a\"b", deadline: 60_000, body }, { id: "bad", deadline: 60_000, body: { ...body, count: 1.5 } }, { deadline: 60_000, body }, { id: "no deadline", body }
      ] }))
      const answers = new Map<string, { readonly reply?: unknown; readonly refused?: { readonly reason: { readonly _tag: string } } }>(
        items.map((item: { readonly id: string; readonly body: object }) => [item.id, item.body])
      )
      assert.deepStrictEqual(answers.get("a\"b")?.reply, { total: "200", validUntil: "1970-01-02T00:00:00.000Z" })
      for (const id of ["bad", "", "no deadline"]) assert.strictEqual(answers.get(id)?.refused?.reason._tag, "MalformedMessage", id)
    }), 60_000)

  it.live("counts answers that a client cannot read, which are lost for it", () =>
    Effect.gen(function*() {
      const endpoint = yield* endpoints.tcp
      const router = yield* bare(() => new zmq.Router({ linger: 0 }))
      yield* Effect.promise(() => router.bind(endpoint))
      const { request } = yield* RouterDealer.client({ ...quotes, endpoint, requestTimeout: "50 millis", retry: Schedule.recurs(1) })
      yield* Effect.forkChild(Effect.forever(Effect.flatMap(Effect.promise(() => router.receive()), ([peer, body]) =>
        Effect.promise(() => router.send([peer!, JSON.stringify({ v: 1, items: [{ id: JSON.parse(String(body)).items[0].id, body: { reply: { total: "many" } } }, { id: "foreign", body: { reply: { total: "1", validUntil: at.toISOString() } } }] })])))))
      assert.strictEqual(reasonOf(yield* Effect.flip(request(ask("apple")))), "RetriesExhausted")
      assert.isAtLeast((yield* Metric.value(ZmqMetrics.strayReplies)).count, 2)
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map())), 60_000)
})
