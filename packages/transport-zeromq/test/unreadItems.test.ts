import { assert, describe, it } from "@effect/vitest"
import { type DeadLetter, Wire } from "@purser/core"
import { frameItemsMax } from "@purser/core/WireSchema"
import { chargeFor } from "@purser/testkit/chargeFor"
import { ReqRep, ZmqTransport } from "@purser/transport-zeromq"
import { Effect, Schedule, Schema } from "effect"
import { bareRequester, freeAddress, paid, serveOn } from "./support.ts"

const wire = Wire.make({ labels: "calendar" })
const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`
const letterBox = () => {
  const letters: Array<DeadLetter> = []
  const until = (count: number) => Effect.repeat(Effect.sync(() => letters.length), { until: (length) => length >= count, schedule: Schedule.spaced("5 millis") })
  return { letters, until, deadLetters: (letter: DeadLetter) => Effect.sync(() => void letters.push(letter)) }
}
const textOf = ({ body }: DeadLetter) => Buffer.from(body).toString()

describe("an item of a joined frame that cannot be read", () => {
  it.live("is kept by itself, as it came, and its neighbours are served", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      const { deadLetters, letters, until } = letterBox()
      yield* serveOn(ZmqTransport.layerReqRepServer({ endpoint, deadLetters }), (request) => Effect.succeed(paid(request)))
      const ask = yield* bareRequester(endpoint)
      const good = wire.encodeRequests("c", [{ id: "good", deadlineMs: 5000, request: chargeFor("c", "2026-07") }])
      const { body } = JSON.parse(good).items[0]
      const bad = [{ id: "1", deadline: 5000, body: { bad: 1 } }, { id: "2", deadline: -5, body }, null]
      const { items } = JSON.parse((yield* ask(good.replace("[{", `[${bad.map((item) => JSON.stringify(item)).join(",")},{`)))[0]!)
      assert.deepStrictEqual(items.map(({ body, id }: { id: string; body: { outcome?: object } }) => [id, body.outcome !== undefined]), [["1", false], ["2", false], ["", false], ["good", true]])
      yield* until(3)
      assert.deepStrictEqual(letters.map(({ reason, transport }) => [transport, reason]), Array.from({ length: 3 }, () => ["req-rep", "MalformedMessage"]))
      assert.deepStrictEqual(letters.map((letter) => JSON.parse(textOf(letter))), bad)
      // Many of them, or one that cannot be written again, are kept as the frame that they came in.
      for (const hostile of [`{"v":1,"client":"c","items":[${Array.from({ length: 200 }, (_, n) => n).join(",")}]}`, `{"v":1,"client":"c","items":[${deep}]}`]) {
        const before = letters.length
        yield* ask(hostile)
        yield* until(before + 1)
        assert.strictEqual(textOf(letters[before]!).length > 150, true)
        assert.strictEqual(letters.length, before + 1)
      }
    }), 60_000)

  it.live("is kept with its frame when a field of it is written twice, since one of the two would be lost; and so is a plain message", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      const { deadLetters, letters, until } = letterBox()
      yield* serveOn(ZmqTransport.layerReqRepServer({ endpoint, deadLetters }), (request) => Effect.succeed(paid(request)))
      const ask = yield* bareRequester(endpoint)
      const items = ["first", "second"].map((id) => ({ id, deadlineMs: 5000, request: chargeFor(id, "2026-07") }))
      const frame = wire.encodeRequests("c", items).replace("\"amount_minor\"", "\"amount_minor\":1,\"amount_minor\"")
      const answers = JSON.parse((yield* ask(frame))[0]!).items as ReadonlyArray<{ readonly id: string; readonly body: { readonly error?: { readonly reason: object } } }>
      assert.deepStrictEqual(answers.map(({ body, id }) => [id, body.error?.reason]).toSorted(), [
        ["first", { _tag: "MalformedMessage", detail: "duplicate field \"amount_minor\"", field: null }], ["second", undefined]
      ])
      const plain = "{\"customer_id\":\"c\",\"billing_period\":\"2026-07\",\"amount_cents\":1999,\"stripe_customer_id\":\"cus_1\",\"seq\":7,\"\\u0061mount_cents\":1}"
      const { ack_seq, error, status } = JSON.parse((yield* ask(plain))[0]!)
      assert.deepStrictEqual([status, ack_seq, error.reason, error.outcome, error.message], ["error", 7, "MalformedMessage", "not_charged", "malformed message: duplicate field \"amount_cents\""])
      yield* until(2)
      assert.deepStrictEqual(letters.map(textOf), [frame, plain])
    }), 60_000)

  it.live("is not even looked at where there are more of them than a frame may have: one answer, one letter", () =>
    Effect.gen(function*() {
      const [charges, service] = [yield* freeAddress, yield* freeAddress]
      const { deadLetters, letters, until } = letterBox()
      yield* serveOn(ZmqTransport.layerReqRepServer({ endpoint: charges, deadLetters }), (request) => Effect.succeed(paid(request)))
      yield* Effect.forkScoped(ReqRep.serve({ request: Schema.Unknown, reply: Schema.Void, endpoint: service, deadLetters }, () => Effect.void))
      for (const [index, endpoint] of [charges, service].entries()) {
        const ask = yield* bareRequester(endpoint)
        const answers = Effect.fnUntraced(function*(length: number) {
          const [text] = yield* ask(`{"v":1,"client":"c","items":[${Array.from({ length }, () => 1).join(",")}]}`)
          // What is no frame of charges is answered in the plain form.
          return (JSON.parse(text!).items?.length ?? 1) as number
        })
        assert.deepStrictEqual([yield* answers(frameItemsMax), yield* answers(frameItemsMax + 1), yield* answers(200_000)], [frameItemsMax, 1, 1])
        yield* until(3 * (index + 1))
        assert.isTrue(letters.every(({ reason }) => reason === "MalformedMessage"))
      }
      assert.strictEqual(letters.length, 6)
    }), 60_000)

  it.live("is kept by services of other messages too", () =>
    Effect.gen(function*() {
      const endpoint = yield* freeAddress
      const { deadLetters, letters, until } = letterBox()
      yield* Effect.forkScoped(ReqRep.serve({ request: Schema.Struct({ n: Schema.Int }), reply: Schema.Int, endpoint, deadLetters }, ({ n }) => Effect.succeed(n + 1)))
      const ask = yield* bareRequester(endpoint)
      const bad = [{ id: "1", deadline: 5000, body: { n: "one" } }, { id: "2", deadline: 0, body: { n: 1 } }, null, 7, "text", [{ id: "4" }], { body: { n: 5 } }]
      const { items } = JSON.parse((yield* ask(JSON.stringify({ v: 1, client: "c", items: [...bad, { id: "3", deadline: 5000, body: { n: 3 } }] })))[0]!)
      assert.deepStrictEqual(items.map(({ body, id }: { body: object; id: string }) => [id, Object.keys(body)[0]]), [
        ["1", "refused"], ["2", "refused"], ["", "refused"], ["", "refused"], ["", "refused"], ["", "refused"], ["", "refused"], ["3", "reply"]
      ])
      yield* until(bad.length)
      assert.deepStrictEqual(letters.map((letter) => JSON.parse(textOf(letter))), bad)
    }), 60_000)
})
