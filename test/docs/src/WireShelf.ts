/**
 * What is published beside the page of the wire: JSON Schemas of the messages, and test vectors. The vectors' inputs are written here
 * by hand; what they read as is what the codec says.
 */
import {
  CapExceeded, chargeKeyOf, ChargeInProgress, type ChargeKey, type ChargeReply, currencies, currencyRule, Declined, LedgerError, Money, parseCurrency, parsePeriod, Processing,
  Rejected, RequiresAction, SpendCapError, Succeeded, Wire
} from "@purser/core"
import { WireSchema } from "@purser/core/WireSchema"
import { Result, Schema } from "effect"

type Json = { readonly [name: string]: unknown }

/** Schemas by name, draft 2020-12. Names of definitions hold no slash, which would have to be escaped where they are named. */
export const wireSchemas = (): ReadonlyMap<string, Json> =>
  new Map(Object.entries(WireSchema).map(([name, schema]) => {
    const { definitions, schema: root } = Schema.toJsonSchemaDocument(schema)
    const plain = (long: string) => long.replace("@purser/core/", "").replaceAll("/", ".")
    const referred = (_: string, long: string) => `"#/$defs/${plain(long.replaceAll("~1", "/"))}"`
    const document = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      title: `Purser's wire: ${name}`,
      ...root,
      ...(Object.keys(definitions).length === 0 ? {} : { $defs: Object.fromEntries(Object.entries(definitions).map(([long, one]) => [plain(long), one])) })
    }
    return [name, JSON.parse(JSON.stringify(document).replaceAll(/"#\/\$defs\/([^"]+)"/g, referred)) as Json]
  }))

const wire = Wire.make({})

/** Identities as hashed text: what stands here was written by hand. */
const identities = [
  { customer_id: "cust_123", billing_period: "Q3-2026", namespace: "zmq-billing", text: "cust_123:Q3-2026:zmq-billing" },
  { customer_id: "cust_123", billing_period: "Q3-2026", namespace: "zmq-billing", item: "seat-1", text: "cust_123:Q3-2026:zmq-billing:seat-1" },
  { customer_id: "cust_123", billing_period: "2026-07", namespace: "zmq-billing@acct_1Oslo", text: "cust_123:2026-07:zmq-billing@acct_1Oslo" },
  { customer_id: "a:b", billing_period: "2026-07", namespace: "zmq-billing", item: "100%", text: "a%3Ab:2026-07:zmq-billing:100%25" },
  { customer_id: "Ünlü & Söhne", billing_period: "2026-W31", namespace: "zmq-billing", text: "Ünlü & Söhne:2026-W31:zmq-billing" },
  { customer_id: "cust_123", billing_period: "2026", namespace: "zmq-billing", revision: 1, text: "cust_123:2026:zmq-billing::r1" },
  { customer_id: "cust_123", billing_period: "2026", namespace: "zmq-billing", item: "seat-1", revision: 2, text: "cust_123:2026:zmq-billing:seat-1:r2" }
]

const periods = ["2026-07", "2026", "Q3-2026", "2026-Q3", "2026Q3", "2026-W31", "2026-07-31", "2026-07-01/2026-07-31", "2026-13", "2026-Q5", "2026-02-29", "2026-7", "July 2026", ""]

/** Amounts as a file has them. What our reader refuses for Stripe's steps and limits is not here: that is the receiver's to say. */
const amounts = [
  ["12.50", "usd"], ["12.5", "USD"], ["12", "usd"], ["19.99", "usd"], ["8.20", "eur"], ["500000", "vnd"], ["5000", "jpy"], ["700", "clp"], ["655957", "xof"],
  ["1.250", "kwd"], ["12.5", "bhd"], ["1000", "isk"], ["5000.00", "ugx"], ["900000.00", "idr"],
  ["5000.50", "jpy"], ["500000.00", "vnd"], ["30.005", "usd"], ["1.2345", "kwd"], ["1e3", "usd"], ["-5.00", "usd"], ["+5.00", "usd"], ["1,234.50", "usd"], ["12,50", "eur"],
  [" 5.00", "usd"], ["5.00\n", "usd"], ["5.", "usd"], [".50", "usd"], ["", "usd"], ["5_000", "usd"], ["\u0665\u0660", "usd"], ["NaN", "usd"],
  ["5.00", "xxx"], ["5.00", ""], ["5", "\u212Arw"]
] as const

const body = { customer_id: "cust_123", billing_period: "Q3-2026", item: "seat-1", amount_minor: 1999, currency: "usd", stripe_customer_id: "cus_T001", payment_method: "pm_T001" }
const frame = (items: ReadonlyArray<unknown>, more: Json = {}) => JSON.stringify({ v: 1, client: "5f0c4a6e-6f0e-4a43-9d8a-0a3d3c1f9a77", items, ...more })
const item = (id: unknown, content: unknown, more: Json = {}) => ({ id, deadline: 5000, body: content, ...more })

const joined = [
  { name: "one request", written_by_clients: true, request: frame([item("m1", body)]) },
  { name: "two requests in one frame", written_by_clients: true, request: frame([item("m1", body), item("m2", { ...body, customer_id: "Ünlü & Söhne", item: null })]) },
  { name: "a namespace, a revision and another spelling of the period", written_by_clients: true, request: frame([item("m1", { ...body, namespace: "zmq-billing@acct_1Oslo", billing_period: "2026-Q3", revision: 1 })]) },
  { name: "fields that nobody knows are ignored", written_by_clients: false, request: frame([item("m1", { ...body, note: "x" }, { priority: 1 })], { more: true }) },
  { name: "a bad item spoils itself alone", written_by_clients: false, request: frame([item("m1", { ...body, amount_minor: "1999" }), item("m2", body)]) },
  { name: "amounts are integers", written_by_clients: false, request: frame([item("m1", { ...body, amount_minor: 19.99 })]) },
  { name: "a period that does not exist", written_by_clients: false, request: frame([item("m1", { ...body, billing_period: "2026-13" })]) },
  { name: "a currency that Stripe does not charge", written_by_clients: false, request: frame([item("m1", { ...body, currency: "xxx" })]) },
  { name: "no usable id: answered under the empty one", written_by_clients: false, request: frame([item(7, body)]) },
  { name: "a field that is written twice spoils its item alone", written_by_clients: false, request: frame([item("m1", body), item("m2", { ...body, customer_id: "cust_124" })]).replace(/(?=,"currency"[^}]*\}\}\]\}$)/, ",\"amount_minor\":1") },
  { name: "an escape makes no other name", written_by_clients: false, request: frame([item("m1", body)]).replace("\"amount_minor\"", "\"\\u0061mount_minor\":1,\"amount_minor\"") },
  { name: "an id that is written twice is none", written_by_clients: false, request: frame([item("m1", body)]).replace("\"id\"", "\"id\":\"m2\",\"id\"") },
  { name: "what is around the items, written twice: refused whole", written_by_clients: false, request: frame([item("m1", body)]).replace("\"v\":1", "\"v\":2,\"v\":1") },
  { name: "a version that is not known: refused whole", written_by_clients: false, request: JSON.stringify({ v: 2, client: "c", items: [item("m1", body)] }) }
]

const plainBody = { customer_id: "cust_123", billing_period: "Q3-2026", amount_cents: 1999, stripe_customer_id: "cus_T001" }
const plain = [
  { name: "the least", request: JSON.stringify({ ...plainBody, seq: 7 }) },
  { name: "a key of the sender's is not used", request: JSON.stringify({ ...plainBody, idempotency_key: "1699999999-42", seq: "17" }) },
  { name: "everything", request: JSON.stringify({ ...plainBody, currency: "eur", item: "seat-1", payment_method: "pm_T001", namespace: "zmq-billing", revision: null }) },
  { name: "an amount in a text is refused", request: JSON.stringify({ ...plainBody, amount_cents: "1999", seq: 7 }) },
  { name: "a field that is written twice", request: JSON.stringify({ ...plainBody, seq: 7 }).replace("\"amount_cents\"", "\"amount_cents\":1,\"amount_cents\"") },
  { name: "an escape makes no other name", request: JSON.stringify({ ...plainBody, seq: 7 }).replace("}", ",\"\\u0061mount_cents\":1}") },
  { name: "also in a field that nobody knows", request: JSON.stringify({ ...plainBody, note: { a: [{ b: 1 }] }, seq: 7 }).replace("\"b\":1", "\"b\":1,\"b\":2") },
  { name: "equal names in two objects are no field twice", request: JSON.stringify({ ...plainBody, note: [{ seq: 1 }, { seq: 2 }], seq: 7 }) },
  { name: "a counter that is written twice is not echoed", request: JSON.stringify({ ...plainBody, seq: 7 }).replace("}", ",\"seq\":8}") },
  { name: "no customer", request: JSON.stringify({ ...plainBody, customer_id: undefined }) }
]

const key = (identity: typeof identities[number]): ChargeKey =>
  chargeKeyOf({
    customerId: identity.customer_id,
    billingPeriod: Result.getOrThrow(parsePeriod(identity.billing_period)),
    namespace: identity.namespace,
    item: identity.item,
    revision: identity.revision
  })
const own = key(identities[1]!)
const facts: ReadonlyArray<readonly [string, ChargeReply]> = [
  ["paid", Result.succeed(new Succeeded({ chargeKey: own, alreadySettled: false, paymentIntentId: "pi_1", chargeId: "ch_1", amountReceivedMinor: 1999 }))],
  ["paid before", Result.succeed(new Succeeded({ chargeKey: own, alreadySettled: true, paymentIntentId: "pi_1", chargeId: "ch_1", amountReceivedMinor: 1999 }))],
  ["declined", Result.succeed(new Declined({ chargeKey: own, alreadySettled: false, paymentIntentId: "pi_2", code: "card_declined", declineCode: "expired_card", detail: "Your card has expired." }))],
  ["settles later", Result.succeed(new Processing({ chargeKey: own, alreadySettled: false, paymentIntentId: "pi_1" }))],
  ["the customer has to act", Result.succeed(new RequiresAction({ chargeKey: own, alreadySettled: false, paymentIntentId: "pi_1", detail: "authentication_required" }))],
  ["no cap", Result.succeed(new Rejected({ chargeKey: own, alreadySettled: false, code: "cap_missing", detail: "no cap is open" }))],
  ["over the cap", Result.fail(new SpendCapError({ reason: new CapExceeded({ billingPeriod: "Q3-2026", currency: "usd", capMinor: 11000, reservedMinor: 10000, requestedMinor: 1999 }), chargeKey: own }))],
  ["another worker has it", Result.fail(new LedgerError({ reason: new ChargeInProgress({ leaseLeftMs: 5000 }), chargeKey: own }))]
]
const tagOf = (reply: ChargeReply) => Result.isSuccess(reply) ? reply.success._tag : reply.failure._tag
const keyIn = (reply: ChargeReply) => Result.isSuccess(reply) ? reply.success.chargeKey : reply.failure.chargeKey ?? undefined

/** What a client takes of a reply: answers to what it asked, for the charge that it asked. */
const taken = (reply: string, asked: Readonly<Record<string, unknown>>): Json => {
  const read = wire.decodeReplies(reply)
  const requests = wire.decodeRequests(frame(Object.entries(asked).map(([id, content]) => item(id, content))))
  const keys = new Map(Result.isSuccess(requests) && requests.success.form === "joined" ? requests.success.items.map(({ id, request }) => [id, Result.getOrThrow(request).chargeKey]) : [])
  const answers = Result.isSuccess(read) ? read.success.filter(({ id, reply }) => keys.has(id) && (keyIn(reply) ?? keys.get(id)) === keys.get(id)) : []
  return Object.fromEntries(answers.map(({ id, reply }) => [id, tagOf(reply)]))
}

/** What a request reads as; `charge_key` is null where it is refused. */
const readAs = (request: Result.Result<{ readonly chargeKey: ChargeKey; readonly amountMinor: number; readonly currency: string }, unknown>) =>
  Result.isSuccess(request)
    ? { charge_key: request.success.chargeKey, amount_minor: request.success.amountMinor, currency: request.success.currency }
    : { charge_key: null }

/** The vectors as they are published. */
export const wireVectors = (): Json => ({
  about: "Test vectors of Purser's wire, docs/wire.md. A client holds if it makes the same keys, writes requests of the same meaning, and reads the replies as is said.",
  keys: identities.map((identity) => ({ ...identity, charge_key: key(identity) })),
  periods: periods.map((written) => ({ written, read: Result.getOrElse(parsePeriod(written), () => null) })),
  exponents: Object.fromEntries(currencies.toSorted().map((currency) => [currency, currencyRule(currency).exponent])),
  amounts: amounts.map(([amount, written]) => {
    const currency = parseCurrency(written)
    const read = currency === undefined ? undefined : Result.getOrUndefined(Money.fromDecimal(amount, currency))
    return { amount, currency: written, amount_minor: read?.amountMinor ?? null }
  }),
  joined: joined.map((one) => {
    const read = wire.decodeRequests(one.request)
    const items = Result.isSuccess(read) && read.success.form === "joined" ? read.success.items : []
    return { ...one, refused_whole: Result.isFailure(read), items: items.map(({ id, request }) => ({ id, ...readAs(request) })) }
  }),
  plain: plain.map((one) => {
    const read = Result.getOrThrow(wire.decodeRequests(one.request))
    if (read.form !== "plain") throw new Error(`${one.name} is not of the plain form`)
    return { ...one, ack_seq: read.seq, ...readAs(read.request) }
  }),
  joined_replies: [
    ...facts.map(([name, reply]) => ({ name, asked: { m1: body }, reply: wire.encodeReplies([{ id: "m1", reply }]) })),
    { name: "an answer for another charge is no answer", asked: { m1: { ...body, customer_id: "cust_124" } }, reply: wire.encodeReplies([{ id: "m1", reply: facts[0]![1] }]) },
    { name: "an answer that nobody asked for is no answer", asked: { m1: body }, reply: wire.encodeReplies([{ id: "m9", reply: facts[0]![1] }]) },
    { name: "an item that cannot be read is no answer, and spoils no other", asked: { m1: body, m2: body }, reply: wire.encodeReplies([{ id: "m2", reply: facts[0]![1] }]).replace("[", "[7,{\"id\":\"m1\",\"body\":{\"outcome\":5}},{\"id\":\"m1\"},") },
    ...([
      ["another version", "\"v\":1", "\"v\":2"], ["no version", "\"v\":1,", ""], ["true is no version", "\"v\":1", "\"v\":true"],
      ["an id that is no text", "\"id\":\"m1\"", "\"id\":[\"m1\"]"], ["no id", "\"id\":\"m1\",", ""],
      ["an outcome of no kind", "\"_tag\":\"Succeeded\",", ""], ["an outcome of a kind that nobody knows", "\"Succeeded\"", "\"Paid\""], ["a kind that is no text", "\"Succeeded\"", "[\"Succeeded\"]"],
      ["paid, and nobody says how much", ",\"amountReceivedMinor\":1999", ""], ["paid, with an amount in a text", "1999", "\"1999\""], ["paid, with NaN", "1999", "NaN"],
      ["paid, and nobody says whether before", "\"alreadySettled\":false,", ""], ["an outcome of no charge", `"chargeKey":"${own}",`, ""],
      ["an outcome called an error", "\"outcome\"", "\"error\""]
    ] as const).map(([what, from, to]) => ({ name: `${what}: no answer`, asked: { m1: body }, reply: wire.encodeReplies([{ id: "m1", reply: facts[0]![1] }]).replace(from, to) })),
    ...([["an empty error", "{}"], ["an error of a kind that nobody knows", "{\"_tag\":\"Oops\",\"reason\":{\"_tag\":\"Oops\"}}"], ["an error without a reason", "{\"_tag\":\"LedgerError\",\"chargeKey\":null}"]] as const)
      .map(([what, error]) => ({ name: `${what}: no answer`, asked: { m1: body }, reply: `{"v":1,"items":[{"id":"m1","body":{"error":${error}}}]}` })),
    { name: "not JSON: no answer", asked: { m1: body }, reply: "<html>502 Bad Gateway</html>" },
    { name: "no items: no answer", asked: { m1: body }, reply: "{\"v\":1}" }
  ].map((one) => ({ ...one, answers: taken(one.reply, one.asked) })),
  plain_replies: facts.map(([name, reply]) => ({ name, reply: wire.encodePlainReply(reply, 7) }))
})

/** The files of `docs/wire`, by their names. */
export const wireFiles = (): ReadonlyMap<string, string> =>
  new Map([
    ...[...wireSchemas()].map(([name, schema]) => [`docs/wire/${name}.schema.json`, `${JSON.stringify(schema, null, 2)}\n`] as const),
    ["docs/wire/vectors.json", `${JSON.stringify(wireVectors(), null, 2)}\n`] as const
  ])
