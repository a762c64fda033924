import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { RunMark, Wire } from "../src/index.ts"
import { request } from "./arbitraries.ts"

const wire = Wire.make({})
const itemsOf = (text: string) => {
  const frame = Result.getOrThrow(wire.decodeRequests(text))
  return frame.form === "joined" ? frame.items.map((item) => Result.getOrThrow(item.request)) : assert.fail("expected the joined form")
}
const plain = { customer_id: "acme", billing_period: "2026-Q3", amount_cents: 1999, stripe_customer_id: "cus_T001" }
const plainOf = (message: object) => {
  const frame = Result.getOrThrow(wire.decodeRequests(JSON.stringify(message)))
  return frame.form === "plain" ? Result.getOrThrow(frame.request) : assert.fail("expected the plain form")
}

describe("the run of a request on the wire", () => {
  it.prop("comes across beside its own request, which stays equal to one without", [request, request], ([one, other]) => {
    RunMark.on(one, "20261130T020741Z-54fb0ac7")
    const text = wire.encodeRequests("c", [{ id: "1", deadlineMs: 5, request: one }, { id: "2", deadlineMs: 5, request: other }])
    const [first, second] = itemsOf(text)
    assert.deepStrictEqual([first, second], [one, other])
    assert.deepStrictEqual([RunMark.of(first!), RunMark.of(second!)], ["20261130T020741Z-54fb0ac7", undefined])
  })

  it.prop("that is none refuses nothing, and goes into no log", [request, Schema.Json], ([good, junk]) => {
    const frame = JSON.parse(wire.encodeRequests("c", [{ id: "1", deadlineMs: 5, request: good }])) as { readonly items: ReadonlyArray<object> }
    for (const value of [junk, "two\nlines", "a".repeat(101), ""]) {
      const [item] = itemsOf(JSON.stringify({ ...frame, items: frame.items.map((one) => ({ ...one, run_id: value })) }))
      assert.deepStrictEqual(item, good)
      const run = RunMark.of(item!)
      if (run !== undefined) assert.match(run, /^[\x21-\x7e]{1,100}$/)
    }
  })

  it("is read of a plain message too", () => {
    assert.strictEqual(RunMark.of(plainOf({ ...plain, run_id: "july" })), "july")
    assert.strictEqual(RunMark.of(plainOf(plain)), undefined)
    assert.deepStrictEqual(plainOf({ ...plain, run_id: "july" }), plainOf(plain))
  })
})
