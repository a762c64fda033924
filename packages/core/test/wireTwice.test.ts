/** A field that is written twice, in either form and at any depth: refused where it stands, by name, and told from texts that only look like it. */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Result, Schema } from "effect"
import { Wire } from "../src/index.ts"
import { writtenTwice } from "../src/internal/wireTwice.ts"

const wire = Wire.make({})
const plainBody = "\"customer_id\":\"acme\",\"billing_period\":\"2026-Q3\",\"stripe_customer_id\":\"cus_1\",\"amount_cents\":1999,\"seq\":7"
const body = "\"customer_id\":\"acme\",\"billing_period\":\"2026-Q3\",\"stripe_customer_id\":\"cus_1\",\"currency\":\"usd\",\"amount_minor\":1999"
const detail = (read: Result.Result<unknown, { readonly message: string }>) => Result.isFailure(read) ? read.failure.message : "read"

const plain = (fields: string) => {
  const frame = Result.getOrThrow(wire.decodeRequests(`{${fields}}`))
  return frame.form === "plain" ? [frame.seq, detail(frame.request)] : assert.fail("expected the plain form")
}
const joined = (...items: ReadonlyArray<string>) => {
  const frame = Result.getOrThrow(wire.decodeRequests(`{"v":1,"client":"c","items":[${items.join(",")}]}`))
  return frame.form === "joined" ? frame.items.map(({ id, request }) => [id, detail(request)]) : assert.fail("expected the joined form")
}
const item = (id: string, fields: string, more = "") => `{"id":"${id}","deadline":5,"body":{${fields}}${more}}`
const refused = (name: string) => `malformed message: duplicate field "${name}"`

describe("a field that is written twice", () => {
  it("refuses a plain message, whichever field it is and wherever it stands", () => {
    assert.deepStrictEqual(plain(plainBody), [7, "read"])
    for (const first of ["1", "1999", "null", "\"1999\"", "{\"a\":[1]}"]) {
      assert.deepStrictEqual(plain(`"amount_cents":${first},${plainBody}`), [7, refused("amount_cents")])
      assert.deepStrictEqual(plain(`${plainBody},"amount_cents":${first}`), [7, refused("amount_cents")])
    }
    assert.deepStrictEqual(plain(`${plainBody},"note":1,"note":1`), [7, refused("note")])
    assert.deepStrictEqual(plain(`${plainBody},"note":{"a":[{"b":1,"c":2,"b":1}]}`), [7, refused("b")])
    assert.deepStrictEqual(plain(`${plainBody},"items":[{"b":1},{"b":1,"b":2}]`), [7, refused("b")])
    assert.deepStrictEqual(plain(`${plainBody},"__proto__":1,"__proto__":2`), [7, refused("__proto__")])
    assert.deepStrictEqual(plain(`${plainBody},"":1,"":2`), [7, refused("")])
    for (const text of ["c:\\\\", "say \\\"no\\\"", "c:\\\\\\\"", "\\\\\\\\"]) assert.deepStrictEqual(plain(`${plainBody},"path":"${text}","note":1,"note":2`), [7, refused("note")], text)
    assert.deepStrictEqual(plain(`${plainBody},"other":"customer_id","more":["seq"],"note":1,"note":2`), [7, refused("note")], "a value is no name")
    assert.deepStrictEqual(plain(`${plainBody},"other":null,"more":[null],"note":1,"note":null`), [7, refused("note")])
  })

  it("is the same field however it is written", () => {
    for (const name of ["\\u0061mount_cents", "amount\\u005Fcents", "\\u0061\\u006d\\u006f\\u0075\\u006e\\u0074_cents"]) {
      assert.deepStrictEqual(plain(`"${name}":1,${plainBody}`), [7, refused("amount_cents")])
      assert.deepStrictEqual(plain(`${plainBody} , \r\n\t"${name}" \n : 1`), [7, refused("amount_cents")])
    }
    assert.deepStrictEqual(plain(`${plainBody},"a\\/b":1,"a/b":2`), [7, refused("a/b")])
  })

  it("is not seen where there is none", () => {
    for (const more of [
      "\"note\":\"\\\"amount_cents\\\":1,\\\"amount_cents\\\":1\"", "\"note\":\"amount_cents\",\"other\":[\"amount_cents\",\"amount_cents\"]", "\"note\":\"\\\\\",\"other\":\": \\\\\\\"\"",
      "\"note\":[{\"b\":1},{\"b\":1}]", "\"b\":{\"b\":{\"b\":1}}", "\"__proto__\":{\"customer_id\":\"evil\"}", "\"B\":1,\"b\":2", "\"toString\":1", "\"1\":1,\"01\":2", "\"\u212a\":1,\"k\":2,\"K\":3"
    ]) assert.deepStrictEqual(plain(`${plainBody},${more}`), [7, "read"], more)
  })

  it("spoils its item alone in the joined form, and the frame where it stands around them", () => {
    const good = item("m1", body)
    assert.deepStrictEqual(joined(good, item("m2", `${body},"amount_minor":1`), item("m3", body, ",\"deadline\":6"), item("m4", body, ",\"note\":[{\"a\":1,\"a\":1}]"), item("m5", body)), [
      ["m1", "read"], ["m2", refused("amount_minor")], ["m3", refused("deadline")], ["m4", refused("a")], ["m5", "read"]
    ])
    for (const [more, name] of [["\"v\":1", "v"], ["\"client\":\"c\"", "client"], ["\"items\":[]", "items"], ["\"\\u0076\":1", "v"], ["\"more\":{\"a\":1,\"a\":2}", "a"], ["\"more\":[{\"a\":1,\"a\":2}]", "a"], ["\"more\":{\"items\":[{\"a\":1,\"a\":2}]}", "a"]] as const) {
      for (const text of [`{"v":1,"client":"c","items":[${good}],${more}}`, `{${more},"v":1,"client":"c","items":[${good}]}`]) {
        assert.strictEqual(detail(wire.decodeRequests(text)), refused(name), text)
      }
    }
  })

  it("leaves no id or counter to answer to, when it is that: one of them may be another request's", () => {
    assert.deepStrictEqual(plain(`${plainBody},"seq":8`), [undefined, refused("seq")])
    assert.deepStrictEqual(plain(`${plainBody},"note":{"seq":1,"seq":2}`), [7, refused("seq")])
    assert.deepStrictEqual(joined(item("m1", body), item("m2", body, ",\"id\":\"m1\""), item("m3", body, ",\"note\":{\"id\":1,\"id\":2}")), [
      ["m1", "read"], ["", refused("id")], ["m3", refused("id")]
    ])
  })

  it("is told by its item, in a row of items only, and by its name; its own are those that stand in it directly", () => {
    const found = (text: string) => [...writtenTwice(text, JSON.parse(text) as object) ?? []].map(([place, { name, own }]) => [place, name, ...own])
    assert.deepStrictEqual(found("{\"items\":{\"x\":{\"a\":1,\"a\":2}}}"), [["frame", "a"]])
    assert.deepStrictEqual(found("{\"items\":[{\"a\":1,\"b\":[1,2,{\"c\":1,\"c\":2}]},{\"d\":1},[{\"e\":1,\"e\":2}],{\"f\":1,\"f\":2,\"g\":1,\"g\":2}]}"), [[0, "c"], [2, "e"], [3, "f", "f", "g"]])
    assert.deepStrictEqual(found("{\"items\":[],\"items\":[{\"a\":1,\"a\":2}],\"v\":1,\"v\":2}"), [["frame", "items", "items", "v"], [0, "a", "a"]])
    assert.deepStrictEqual(found("[{\"a\":1,\"a\":2}]"), [["frame", "a"]])
  })

  it.prop("is found in any JSON by what was done to it, and only then", [Schema.Json, Arbitrary.schema(Schema.Boolean)], ([json, isSpaced]) => {
    const value = { a: json, b: [json, { c: json }] }
    const text = JSON.stringify(value, undefined, isSpaced ? 2 : undefined)
    assert.isUndefined(writtenTwice(text, JSON.parse(text) as object))
    const again = text.replace("{", "{\"a\":[{\"a\":0}],")
    const found = writtenTwice(again, JSON.parse(again) as object)
    assert.deepStrictEqual([...found ?? []], [["frame", { name: "a", own: new Set(["a"]) }]])
  }, { arbitrary: { runs: 300 } })

  it("is looked for in texts that are as deep as they are long, and in many names at once", () => {
    const depth = 100_000
    for (const twice of ["", ",\"a\":1"]) {
      const text = `${"{\"a\":".repeat(depth)}1${`${twice}}`.repeat(depth)}`
      assert.strictEqual(writtenTwice(text, JSON.parse(text) as object)?.get("frame")?.name, twice === "" ? undefined : "a")
    }
  })
})
