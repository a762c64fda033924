/** The wire's shelf: schemas that take what our codec writes, vectors that our codec and a client in Python hold. */
import { assert, describe, it } from "@effect/vitest"
import { currencies, currencyRule, Wire } from "@purser/core"
import { Ajv2020 } from "ajv/dist/2020.js"
import { Result } from "effect"
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { join } from "node:path"
import { blocksOf, readText, root } from "../src/Pages.ts"

interface Vectors {
  readonly keys: ReadonlyArray<{ readonly text: string; readonly charge_key: string }>
  readonly periods: ReadonlyArray<{ readonly written: string; readonly read: string | null }>
  readonly exponents: Readonly<Record<string, number>>
  readonly amounts: ReadonlyArray<{ readonly amount: string; readonly currency: string; readonly amount_minor: number | null }>
  readonly joined: ReadonlyArray<{ readonly name: string; readonly request: string; readonly refused_whole: boolean; readonly items: ReadonlyArray<{ readonly charge_key: string | null }> }>
  readonly plain: ReadonlyArray<{ readonly name: string; readonly request: string; readonly charge_key: string | null; readonly ack_seq?: unknown }>
  readonly joined_replies: ReadonlyArray<{ readonly name: string; readonly reply: string; readonly answers: Readonly<Record<string, string>> }>
  readonly plain_replies: ReadonlyArray<{ readonly name: string; readonly reply: string }>
}
const vectors = JSON.parse(readText("docs/wire/vectors.json")) as Vectors
const ajv = new Ajv2020({ strict: true, allowUnionTypes: true })
const takes = (name: string) => {
  const validate = ajv.compile(JSON.parse(readText(`docs/wire/${name}.schema.json`)) as object)
  return (text: string): boolean => validate(JSON.parse(text))
}
const page = blocksOf(readText("docs/wire.md"))
const shown = (title: string) => page.filter((block) => block.title === title).map(({ text }) => text)

describe("the vectors", () => {
  it("have keys that are the SHA-256 of their text, by another implementation", () => {
    assert.isAbove(vectors.keys.length, 5)
    for (const { charge_key, text } of vectors.keys) assert.strictEqual(charge_key, createHash("sha256").update(text).digest("hex").slice(0, 32), text)
  })

  it("read as they say by our own codec, and refuse what they refuse", () => {
    const wire = Wire.make({})
    for (const { items, name, refused_whole, request } of vectors.joined) {
      const read = wire.decodeRequests(request)
      assert.strictEqual(Result.isFailure(read), refused_whole, name)
      const keys = Result.isSuccess(read) && read.success.form === "joined" ? read.success.items.map((item) => Result.isSuccess(item.request) ? item.request.success.chargeKey : null) : []
      assert.deepStrictEqual(keys, items.map(({ charge_key }) => charge_key as never), name)
    }
    for (const { ack_seq, charge_key, name, request } of vectors.plain) {
      const read = Result.getOrThrow(wire.decodeRequests(request))
      if (read.form !== "plain") return assert.fail(name)
      assert.deepStrictEqual([read.seq, Result.isSuccess(read.request) ? read.request.success.chargeKey : null], [ack_seq, charge_key as never], name)
    }
    const refused = [...vectors.joined.flatMap(({ items }) => items), ...vectors.plain].filter(({ charge_key }) => charge_key === null)
    assert.isAbove(refused.length, 4)
  })

  it("have every currency, and amounts that our codec takes as they are read", () => {
    assert.deepStrictEqual(vectors.exponents, Object.fromEntries(currencies.map((currency) => [currency, currencyRule(currency).exponent])))
    const { amounts } = vectors
    const read = Object.fromEntries(amounts.map(({ amount, amount_minor, currency }) => [`${amount} ${currency}`, amount_minor]))
    const byHand = { "500000 vnd": 500_000, "5000 jpy": 5000, "1.250 kwd": 1250, "1000 isk": 100_000, "19.99 usd": 1999, "12.5 USD": 1250, "500000.00 vnd": null, "5.00 xxx": null, "1e3 usd": null }
    assert.deepInclude(read, byHand)
    const wire = Wire.make({})
    for (const { amount, amount_minor, currency } of amounts.filter(({ amount_minor }) => amount_minor !== null)) {
      const frame = Result.getOrThrow(wire.decodeRequests(JSON.stringify({ customer_id: "c", billing_period: "2026-07", amount_cents: amount_minor, currency, stripe_customer_id: "cus_1" })))
      const request = frame.form === "plain" ? Result.getOrThrow(frame.request) : assert.fail(amount)
      assert.deepStrictEqual([request.amountMinor, request.currency], [amount_minor as never, currency.toLowerCase() as never], amount)
    }
    const rows = readText("docs/input-files.md").split("\n").flatMap((line) => /^\| (\d) \| .*\| ((?:`[A-Z]{3}` ?)+)\|$/.exec(line) ?? [])
    const listed = rows.flatMap((_, at) => at % 3 === 0 ? rows[at + 2]!.match(/[A-Z]{3}/g)!.map((code) => [code.toLowerCase(), Number(rows[at + 1])] as const) : [])
    assert.deepStrictEqual(Object.fromEntries(listed), vectors.exponents)
  })

  it("take an answer only for the charge that was asked, and none that cannot be read", () => {
    const answers = vectors.joined_replies.map(({ answers }) => answers)
    const tags = ["Succeeded", "Succeeded", "Declined", "Processing", "RequiresAction", "Rejected", "SpendCapError", "LedgerError"]
    assert.deepStrictEqual(answers.slice(0, tags.length + 3), [...tags.map((m1) => ({ m1 })), {}, {}, { m2: "Succeeded" }] as never)
    const unreadable = vectors.joined_replies.slice(tags.length + 3)
    assert.isAbove(unreadable.length, 15)
    for (const { answers, name } of unreadable) assert.deepStrictEqual(answers, {}, name)
    // Each is another text than the answer that it was made of.
    assert.strictEqual(new Set(vectors.joined_replies.slice(tags.length + 2).map(({ reply }) => reply)).size, unreadable.length + 1)
    assert.notInclude(unreadable.map(({ reply }) => reply), vectors.joined_replies[0]!.reply)
  })

  it("hold for the client in Python", () => {
    const ended = spawnSync("python3", [join(root, "examples/python/check_vectors.py"), join(root, "docs/wire/vectors.json")], { encoding: "utf8", env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" } })
    // Where there is no Python the recordings of test/interop stand for it.
    if (ended.error !== undefined) return
    assert.match(ended.stdout, /^\d+ vectors hold\n$/, ended.stderr)
    assert.isAtMost(readText("examples/python/purser_client.py").trimEnd().split("\n").length, 60)
  })
})

describe("the schemas", () => {
  const request = { joined: takes("joined-request"), plain: takes("plain-request") }
  const reply = { joined: takes("joined-reply"), plain: takes("plain-reply") }

  it("take every request that is read, and every answer that we write", () => {
    for (const { items, name, refused_whole, request: text } of vectors.joined) {
      if (!refused_whole && items.every(({ charge_key }) => charge_key !== null)) assert.isTrue(request.joined(text), name)
    }
    for (const { charge_key, name, request: text } of vectors.plain) if (charge_key !== null) assert.isTrue(request.plain(text), name)
    const readable = vectors.joined_replies.filter(({ name }) => !/cannot be read|: no answer/.test(name))
    for (const { name, reply: text } of readable) assert.isTrue(reply.joined(text), name)
    for (const { name, reply: text } of vectors.plain_replies) assert.isTrue(reply.plain(text), name)
    for (const text of shown("joined-request")) assert.isTrue(request.joined(text), text)
    for (const text of shown("plain-request")) assert.isTrue(request.plain(text), text)
    for (const text of shown("joined-reply")) assert.isTrue(reply.joined(text), text)
    for (const text of [...shown("plain-reply"), ...shown("plain-malformed")]) assert.isTrue(reply.plain(text), text)
  })

  it("refuse what is of another shape", () => {
    const [joined] = shown("joined-request")
    for (const [from, to] of [["\"v\":1", "\"v\":2"], ["\"deadline\":5000", "\"deadline\":0"], ["\"amount_minor\":1999", "\"amount_minor\":\"1999\""], ["\"id\":\"m1\"", "\"id\":\"\""], ["\"customer_id\":\"cust_123\",", ""]]) {
      assert.include(joined, from)
      assert.isFalse(request.joined(joined!.replace(from!, to!)), to)
    }
    assert.isFalse(request.plain(shown("plain-request")[0]!.replace("\"amount_cents\":1999", "\"amount_cents\":19.99")))
    assert.isFalse(reply.joined(shown("joined-reply")[0]!.replace("\"Succeeded\"", "\"Paid\"")))
    assert.isFalse(reply.plain(shown("plain-reply")[0]!.replace("\"ok\"", "\"fine\"")))
  })
})
