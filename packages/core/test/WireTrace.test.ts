import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { Wire } from "../src/index.ts"
import { request } from "./arbitraries.ts"

const wire = Wire.make({})
const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
const itemsOf = (text: string) => {
  const frame = Result.getOrThrow(wire.decodeRequests(text))
  return frame.form === "joined" ? frame.items : assert.fail("expected the joined form")
}

/** What a receiver reads that was made before traces were on the wire. */
const EarlierFrame = Schema.fromJsonString(Schema.Struct({
  v: Schema.Literal(1),
  client: Schema.String,
  items: Schema.Array(Schema.Struct({ id: Schema.String, deadline: Schema.Finite, body: Schema.Unknown }))
}))

describe("a trace on the wire", () => {
  it.prop("comes across beside its own request, and changes nothing else of the frame", [request, request], ([one, other]) => {
    const items = [{ id: "1", deadlineMs: 5, request: one, traceparent }, { id: "2", deadlineMs: 5, request: other }]
    const text = wire.encodeRequests("c", items)
    assert.deepStrictEqual(itemsOf(text).map((item) => [item.id, item.traceparent, Result.getOrThrow(item.request)]), [["1", traceparent, one], ["2", undefined, other]])
    const untraced = wire.encodeRequests("c", items.map(({ deadlineMs, id, request }) => ({ id, deadlineMs, request })))
    assert.deepStrictEqual(Schema.decodeSync(EarlierFrame)(text), Schema.decodeSync(EarlierFrame)(untraced))
    assert.strictEqual(text.replace(`"traceparent":"${traceparent}",`, ""), untraced)
  })

  it.prop("that is none refuses nothing", [request, Schema.Json], ([good, junk]) => {
    const frame = JSON.parse(wire.encodeRequests("c", [{ id: "1", deadlineMs: 5, request: good }])) as { readonly items: ReadonlyArray<object> }
    const [item] = itemsOf(JSON.stringify({ ...frame, items: frame.items.map((one) => ({ ...one, traceparent: junk })) }))
    assert.deepStrictEqual(item && Result.getOrThrow(item.request), good)
  })

  it("is read of a plain message too", () => {
    const body = { customer_id: "acme", billing_period: "2026-Q3", amount_cents: 1999, stripe_customer_id: "cus_T001" }
    for (const [sent, read] of [[traceparent, traceparent], ["none", undefined], [7, undefined]] as const) {
      const frame = Result.getOrThrow(wire.decodeRequests(JSON.stringify({ ...body, traceparent: sent })))
      assert.deepStrictEqual([frame.form, frame.form === "plain" && Result.isSuccess(frame.request), frame.form === "plain" && frame.traceparent], ["plain", true, read])
    }
  })
})
