import { assert, describe, it } from "@effect/vitest"
import { ChargeClient, type ChargeRequest, ChargeServer, Transport, type TransportServices } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { parentId, SpanJournal } from "@purser/testkit/SpanJournal"
import { RouterDealer, ZmqRpc, ZmqTransport } from "@purser/transport-zeromq"
import { Effect, Layer, Schema } from "effect"
import { Rpc, RpcClient, RpcGroup, RpcServer } from "effect/rpc"
import { randomUUID } from "node:crypto"
import { freeAddress, paid } from "./support.ts"

const patterns: Readonly<Record<string, () => Layer.Layer<TransportServices, unknown>>> = {
  memory: () => Transport.layerMemory,
  "req-rep": ZmqTransport.layerReqRepLoopback,
  "router-dealer": ZmqTransport.layerRouterDealerLoopback,
  "push-pull": ZmqTransport.layerPushPullLoopback,
  "pub-sub": ZmqTransport.layerPubSubLoopback,
  pair: ZmqTransport.layerPair,
  majordomo: ZmqTransport.layerMajordomoLoopback
}

const handler = (request: ChargeRequest) => Effect.as(Effect.withSpan(Effect.void, "work"), paid(request))
const customers = Array.from({ length: 20 }, (_, index) => `cust_${index}`)

describe("a trace goes on behind the message", () => {
  for (const [name, layer] of Object.entries(patterns)) {
    it.live(`of ${name}, for each of many requests in one frame`, () =>
      Effect.gen(function*() {
        const journal = yield* SpanJournal
        const client = yield* ChargeClient
        yield* Effect.forkChild((yield* ChargeServer).serve(handler))
        yield* Effect.forEach(customers, (customer) => Effect.withSpan(client.submit(chargeFor(customer, "2026-07")), customer, { root: true }), { concurrency: "unbounded" })
        const submits = yield* journal.named("ChargeClient.submit")
        const served = yield* journal.named("ChargeServer.handle")
        assert.deepStrictEqual([submits.length, served.length >= customers.length], [customers.length, true])
        for (const customer of customers) {
          const [root] = yield* journal.named(customer)
          const submit = submits.find((span) => span.traceId === root?.traceId)
          const handles = served.filter((span) => span.traceId === root?.traceId)
          assert.strictEqual(submit && parentId(submit), root?.spanId)
          assert.isAtLeast(handles.length, 1)
          for (const handle of handles) {
            assert.deepStrictEqual([parentId(handle), handle.kind], [submit?.spanId, "server"])
            assert.strictEqual(handle.attributes.get("purser.charge_key"), chargeFor(customer, "2026-07").chargeKey)
          }
        }
        const works = yield* journal.named("work")
        assert.deepStrictEqual(new Set(works.map(parentId)), new Set(served.map(({ spanId }) => spanId)))
      }).pipe(Effect.provide(Layer.provideMerge(layer(), SpanJournal.layer))))
  }

  it.live("of a service with other messages, and a span that is not kept stays so", () =>
    Effect.gen(function*() {
      const journal = yield* SpanJournal
      const echo = { request: Schema.Struct({ text: Schema.String }), reply: Schema.Struct({ text: Schema.String }) }
      const endpoint = `inproc://traces-${randomUUID()}`
      yield* Effect.forkChild(RouterDealer.serve({ ...echo, endpoint }, Effect.succeed))
      const { request, requestAll } = yield* RouterDealer.client({ ...echo, endpoint })
      yield* Effect.withSpan(request({ text: "one" }), "kept")
      yield* Effect.withSpan(requestAll([{ text: "two" }, { text: "three" }]), "not kept", { sampled: false })
      const served = yield* journal.named("ServiceServer.handle")
      const traceOf = (span: string) => Effect.map(journal.named(span), ([first]) => first?.traceId)
      assert.deepStrictEqual(served.map(({ sampled, traceId }) => [traceId, sampled]), [
        [yield* traceOf("kept"), true], [yield* traceOf("not kept"), false], [yield* traceOf("not kept"), false]
      ])
    }).pipe(Effect.provide(SpanJournal.layer)))

  it.live("of effect/rpc, by what that library's own messages carry", () =>
    Effect.gen(function*() {
      const journal = yield* SpanJournal
      const endpoint = yield* freeAddress
      class Calls extends RpcGroup.make(Rpc.make("call", { payload: {} })) {}
      const handlers = Calls.toLayer({ call: () => Effect.withSpan(Effect.void, "called") })
      yield* Layer.build(RpcServer.layer(Calls).pipe(Layer.provide(handlers), Layer.provide(ZmqRpc.layerServerProtocol({ endpoint }))))
      const client = yield* Effect.provide(RpcClient.make(Calls), yield* Layer.build(ZmqRpc.layerClientProtocol({ endpoint })))
      yield* Effect.withSpan(client.call({}), "caller", { root: true })
      const traceOf = (span: string) => Effect.map(journal.named(span), ([first]) => first?.traceId)
      assert.isDefined(yield* traceOf("caller"))
      assert.strictEqual(yield* traceOf("called"), yield* traceOf("caller"))
    }).pipe(Effect.provide(SpanJournal.layer)))

  it.live("and nothing is made where nobody traces", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      yield* Effect.forkChild((yield* ChargeServer).serve((request) => Effect.withFiber((fiber) => {
        seen.push(fiber.cache.span)
        return handler(request)
      })))
      yield* Effect.withSpan((yield* ChargeClient).submit(chargeFor("quiet", "2026-07")), "native spans, which nobody exports")
      assert.deepStrictEqual(seen, [undefined])
    }).pipe(Effect.provide(ZmqTransport.layerRouterDealerLoopback())))
})
