import { assert, describe, it } from "@effect/vitest"
import { Backpressure, ChargeClient, PeerLost, TransportError, Wire, type ReadRequest } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { type ReqRepClientOptions, ZmqMetrics, ZmqTransport } from "@purser/transport-zeromq"
import { Context, Effect, Exit, Fiber, Layer, Metric, Ref, Result, Schedule, Scope } from "effect"
import { readdirSync } from "node:fs"
import * as zmq from "zeromq"
import { bare, freeAddress, isolated, paid, paidItem, reasonOf, serve } from "./support.ts"

const wire = Wire.make({ labels: "calendar" })
const clientOf = (options: ReqRepClientOptions) =>
  Effect.map(Layer.build(ZmqTransport.layerReqRepClient(options)), (context) => Context.get(context, ChargeClient))

/** A hand-driven server: it shows what the client sends, and answers what the test says. */
const puppet = Effect.gen(function*() {
  const address = yield* freeAddress
  const router = yield* bare(() => new zmq.Router({ linger: 0, mandatory: true, sendTimeout: 1000 }))
  yield* Effect.promise(() => router.bind(address))
  const take = Effect.map(Effect.promise(() => router.receive()), ([peer, , body]) => {
    const frame = Result.getOrThrow(wire.decodeRequests(String(body)))
    if (frame.form === "plain") throw new Error("the client sends joined frames")
    const answer = (text: string) => Effect.promise(() => router.send([peer!, "", text]))
    return { peer: String(peer), client: frame.client, items: frame.items, answer }
  })
  const replyTo = (items: ReadonlyArray<{ readonly id: string; readonly request: ReadRequest | null }>, amountMinor = 1000) =>
    wire.encodeReplies(items.map(({ id, request }) => ({ id, reply: Result.succeed(paidItem(request, amountMinor)) })))
  return { address, take, replyTo }
})

const patient = { sockets: 1, requestTimeout: "60 seconds", retry: Schedule.recurs(5) } as const

describe("Lazy Pirate", () => {
  it.live("drops and counts a foreign answer, and asks again under another identity", () =>
    isolated(Effect.gen(function*() {
      const { address, replyTo, take } = yield* puppet
      const client = yield* clientOf({ ...patient, endpoint: address })
      const submitted = yield* Effect.forkChild(client.submit(chargeFor("c_1", "2026-07")))
      const first = yield* take
      yield* first.answer(replyTo([{ id: "of-another-request", request: null }], 6666))
      const second = yield* take
      assert.strictEqual(second.items[0]?.id, first.items[0]?.id)
      assert.notStrictEqual(second.peer, first.peer)
      assert.deepStrictEqual([first.client, second.client], [first.peer, second.peer])
      assert.match(first.peer, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
      yield* second.answer(replyTo(second.items))
      assert.strictEqual((yield* Fiber.join(submitted))._tag, "Succeeded")
      assert.strictEqual((yield* Metric.value(ZmqMetrics.strayReplies)).count, 1)
    })), 60_000)

  it.live("asks again when an answer cannot be read", () =>
    isolated(Effect.gen(function*() {
      const { address, replyTo, take } = yield* puppet
      const client = yield* clientOf({ ...patient, endpoint: address })
      const submitted = yield* Effect.forkChild(client.submit(chargeFor("c_1", "2026-07")))
      for (const text of ["", "not JSON", `{"v":1,"items":[]}`, `{"status":"ok"}`]) yield* (yield* take).answer(text)
      const last = yield* take
      yield* last.answer(replyTo(last.items))
      assert.strictEqual((yield* Fiber.join(submitted))._tag, "Succeeded")
    })), 60_000)

  it.live("sends again only what is unanswered of a joined frame", () =>
    Effect.gen(function*() {
      const { address, replyTo, take } = yield* puppet
      const client = yield* clientOf({ ...patient, endpoint: address, joinMax: 8 })
      const first = yield* Effect.forkChild(client.submit(chargeFor("a", "2026-07")))
      const alone = yield* take
      const submitted = yield* Effect.forkChild(
        Effect.forEach(["b", "c", "d"], (customer) => client.submit(chargeFor(customer, "2026-07")), { concurrency: "unbounded" }),
        { startImmediately: true }
      )
      yield* alone.answer(replyTo(alone.items))
      const joined = yield* take
      assert.deepStrictEqual([alone.items.length, joined.items.length], [1, 3])
      yield* joined.answer(replyTo(joined.items.slice(0, 2)))
      const rest = yield* take
      assert.deepStrictEqual(rest.items.map(({ id }) => id), [joined.items[2]!.id])
      yield* rest.answer(replyTo(rest.items))
      assert.strictEqual((yield* Fiber.join(first))._tag, "Succeeded")
      assert.strictEqual((yield* Fiber.join(submitted)).length, 3)
    }), 60_000)

  it.live("says not_charged only when every attempt was refused so", () =>
    Effect.gen(function*() {
      const { address, take } = yield* puppet
      const client = yield* clientOf({ ...patient, endpoint: address, retry: Schedule.recurs(1) })
      const refusing = (reason: TransportError["reason"]) =>
        Effect.flatMap(take, ({ answer, items }) =>
          answer(wire.encodeReplies(items.map(({ id }) => ({ id, reply: Result.fail(new TransportError({ reason, chargeKey: null })) })))))
      const full = new Backpressure({ endpoint: address, window: 1 })
      const ending = (answers: Effect.Effect<unknown>) =>
        Effect.gen(function*() {
          const submitted = yield* Effect.forkChild(Effect.flip(client.submit(chargeFor("c_1", "2026-07"))))
          yield* answers
          const error = yield* Fiber.join(submitted)
          return [reasonOf(error), error.outcome]
        })
      assert.deepStrictEqual(yield* ending(Effect.andThen(refusing(full), refusing(full))), ["Backpressure", "not_charged"])
      const lost = new PeerLost({ endpoint: address })
      assert.deepStrictEqual(yield* ending(Effect.andThen(refusing(lost), refusing(full))), ["PeerLost", "unknown"])
      const unread = Effect.flatMap(take, ({ answer }) => answer("?"))
      assert.deepStrictEqual(yield* ending(Effect.andThen(unread, refusing(full))), ["RetriesExhausted", "unknown"])
    }), 60_000)

  it.live("gives up after its attempts with their number and the charge's key", () =>
    isolated(Effect.gen(function*() {
      const endpoint = yield* freeAddress
      const client = yield* clientOf({ endpoint, sockets: 1, requestTimeout: "20 millis", retry: Schedule.recurs(2) })
      const request = chargeFor("c_1", "2026-07")
      const error = yield* Effect.flip(client.submit(request))
      assert.deepInclude({ ...error }, { chargeKey: request.chargeKey })
      assert.deepInclude(error.reason, { _tag: "RetriesExhausted", attempts: 3, endpoint })
      assert.strictEqual((yield* Metric.value(ZmqMetrics.timeouts)).count, 3)
    })), 60_000)

  it.live("holds no more sockets after hundreds of time-outs than after the first", () =>
    isolated(Effect.gen(function*() {
      const { address } = yield* puppet
      const scope = yield* Scope.make()
      const client = yield* Layer.buildWithScope(
        ZmqTransport.layerReqRepClient({ endpoint: address, sockets: 4, joinMax: 1, requestTimeout: "5 millis", retry: Schedule.recurs(9) }),
        scope
      ).pipe(Effect.map((context) => Context.get(context, ChargeClient)))
      const round = (size: number) =>
        Effect.forEach(Array.from({ length: size }), (_, index) => Effect.flip(client.submit(chargeFor(`c_${index}`, "2026-07"))), { concurrency: "unbounded" })
      const files = () => process.platform === "linux" ? readdirSync("/proc/self/fd").length : 0
      const open = Effect.map(Metric.value(ZmqMetrics.openSockets), ({ value }) => value)

      yield* round(4)
      const [socketsBefore, filesBefore] = [yield* open, files()]
      yield* round(36)
      assert.strictEqual((yield* Metric.value(ZmqMetrics.timeouts)).count, 400)
      assert.isAtMost(yield* open, Math.max(4, socketsBefore))
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(yield* open, 0)
      // libzmq closes in its own thread: the files of the last sockets may still be there, those of hundreds may not.
      assert.isBelow(files() - filesBefore, 60)
    })), 60_000)

  it.live("fails what waits when it is closed, and what comes afterwards", () =>
    Effect.gen(function*() {
      const { address, take } = yield* puppet
      const scope = yield* Scope.make()
      const client = Context.get(yield* Layer.buildWithScope(ZmqTransport.layerReqRepClient({ ...patient, endpoint: address }), scope), ChargeClient)
      const submitted = yield* Effect.forkChild(
        Effect.forEach(["a", "b"], (customer) => Effect.flip(client.submit(chargeFor(customer, "2026-07"))), { concurrency: "unbounded" })
      )
      yield* take
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual((yield* Fiber.join(submitted)).map(reasonOf), ["Closed", "Closed"])
      assert.strictEqual(reasonOf(yield* Effect.flip(client.submit(chargeFor("c", "2026-07")))), "Closed")
    }), 60_000)

  it.live("refuses more than may wait, without sending", () =>
    Effect.gen(function*() {
      const { address, replyTo, take } = yield* puppet
      const client = yield* clientOf({ ...patient, endpoint: address, waitingMax: 1, joinMax: 1 })
      const first = yield* Effect.forkChild(client.submit(chargeFor("a", "2026-07")))
      const asked = yield* take
      const second = yield* Effect.forkChild(client.submit(chargeFor("b", "2026-07")), { startImmediately: true })
      const error = yield* Effect.flip(client.submit(chargeFor("c", "2026-07")))
      assert.deepStrictEqual([reasonOf(error), error.outcome], ["Backpressure", "not_charged"])
      yield* asked.answer(replyTo(asked.items))
      const next = yield* take
      yield* next.answer(replyTo(next.items))
      yield* Effect.all([Fiber.join(first), Fiber.join(second)])
    }), 60_000)

  it.live("closes the socket of an interrupted request", () =>
    Effect.gen(function*() {
      const { address, replyTo, take } = yield* puppet
      const client = yield* clientOf({ ...patient, endpoint: address })
      const givenUp = yield* Effect.forkChild(client.submit(chargeFor("a", "2026-07")))
      const old = yield* take
      yield* Fiber.interrupt(givenUp)
      const submitted = yield* Effect.forkChild(client.submit(chargeFor("b", "2026-07")))
      const next = yield* take
      assert.notStrictEqual(next.peer, old.peer)
      assert.deepStrictEqual(next.items.length, 1)
      yield* next.answer(replyTo(next.items))
      assert.strictEqual((yield* Fiber.join(submitted))._tag, "Succeeded")
    }), 60_000)

  it.live("spreads its requests over the servers of its list", () =>
    Effect.gen(function*() {
      const addresses = [yield* freeAddress, yield* freeAddress]
      const served = yield* Ref.make<ReadonlySet<string>>(new Set())
      for (const address of addresses) {
        yield* serve({ endpoint: address }, (request) => Effect.as(Ref.update(served, (all) => new Set([...all, address])), paid(request)))
      }
      const client = yield* clientOf({ ...patient, endpoint: addresses.join(", ") })
      while ((yield* Ref.get(served)).size < 2) yield* client.submit(chargeFor("c_1", "2026-07"))
    }), 60_000)
})
