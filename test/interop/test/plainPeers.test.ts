/** Senders that speak the plain form, as recorded frames and as a program: served on every pattern, charged once, answered in kind. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { type Conversation, customers, live, type Pattern, patterns, python, recordingOf, replay } from "../src/PyzmqPeer.ts"
import { Shop } from "../src/Shop.ts"
import { freeAddress, servePlain } from "../src/sockets.ts"

const text = (hex: string | undefined) => Buffer.from(hex ?? "", "hex").toString("utf8")
const bodies = (frames: Conversation["received"]) => frames.map((message) => JSON.parse(text(message.at(-1))))

/** The answers by the sender's counter: of the first delivery `ok`, of every later one `already_processed`. */
const checkAnswers = (received: Conversation["received"], status: ReadonlyArray<string>) => {
  const answers = bodies(received).sort((a, b) => a.ack_seq - b.ack_seq)
  assert.deepStrictEqual(answers.map(({ ack_seq, amount_received, status: found }) => [ack_seq, amount_received, status.includes(found)]), [[1, 4900, true], [2, 4900, true]])
  // As a fleet computes it: sha256(f"{customer_id}:{billing_period}:zmq-billing").hexdigest()[:32]
  assert.strictEqual(answers[0].charge_key, createHash("sha256").update("cust_123:Q3-2026:zmq-billing").digest("hex").slice(0, 32))
}

for (const pattern of patterns) {
  layer(Shop.layer, { timeout: 120_000, excludeTestServices: true })(`a plain sender on ${pattern}`, (it) => {
    const serving = Effect.gen(function*() {
      const shop = yield* Shop
      const addresses = { endpoint: yield* freeAddress, ackEndpoint: yield* freeAddress }
      yield* servePlain(pattern, addresses, shop.oursOnly)
      return addresses
    })
    const paidOnce = Effect.gen(function*() {
      const shop = yield* Shop
      for (const customer of customers) assert.deepStrictEqual(yield* shop.payments(customer, "Q3-2026"), [0, 1])
    })

    it.effect("is served by its recorded frames, again and again, and pays once", () =>
      Effect.gen(function*() {
        const addresses = yield* serving
        checkAnswers((yield* replay(pattern, addresses)).received, ["ok"])
        checkAnswers((yield* replay(pattern, addresses)).received, ["already_processed"])
        yield* paidOnce
      }), 60_000)

    it.effect(`is served as ${python === undefined ? "another recorded peer (no Python here has pyzmq)" : "a pyzmq program, which sends what was recorded"}`, () =>
      Effect.gen(function*() {
        const addresses = yield* serving
        const conversation = yield* converse(pattern, addresses)
        assert.deepStrictEqual(conversation.sent, recordingOf(pattern))
        checkAnswers(conversation.received, ["ok", "already_processed"])
        yield* paidOnce
      }), 60_000)
  })
}

const converse = (pattern: Pattern, addresses: { readonly endpoint: string; readonly ackEndpoint: string }) =>
  python === undefined ? replay(pattern, addresses) : live(python, pattern, addresses)
