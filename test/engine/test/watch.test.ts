/**
 * Webhooks and reconciliation over the memory layers and an account that a test writes: what needs no HTTP. A dispute, a
 * refund of our own, events that wait, and an account that is larger than anything that may be held at once.
 */
import { assert, describe, it } from "@effect/vitest"
import {
  type AccountCharge, type AccountPayment, type AccountReader, type AccountReversal, ChargeError, ChargeGateway, DunningBook, GatewayTimeout, Ledger, ProcessorAccount, RateLimited, ReconcileBook, RefundLedger, RefundRequest, Refunded,
  Sightings, WebhookInbox, WebhookSource, WebhookRefused, SignatureWrong
} from "@purser/core"
import { ChargePipeline, type Difference, Reconciler, Webhooks } from "@purser/engine"
import { chargeFor, TestPipeline } from "@purser/testkit"
import { Context, Effect, Fiber, Layer, Random } from "effect"
import { TestClock } from "effect/testing"

interface Account {
  readonly payments: Array<AccountPayment>
  readonly charges: Array<AccountCharge>
  readonly reversals: Array<AccountReversal>
  /** So many reads of a payment are left without an answer. */
  silent: number
  /** So many are refused because they come too soon. */
  limited: number
}
class TestAccount extends Context.Service<TestAccount, Account>()("@purser/test-engine/TestAccount") {}

const pageSize = 100
const paged = <A extends { readonly id: string }>(items: () => ReadonlyArray<A>) => (_: unknown, after: string | undefined) =>
  Effect.sync(() => {
    const from = after === undefined ? 0 : items().findIndex(({ id }) => id === after) + 1
    const page = items().slice(from, from + pageSize)
    return { items: page, next: from + pageSize < items().length ? page.at(-1)!.id : undefined }
  })
const one = <A extends { readonly id: string }>(items: ReadonlyArray<A>) => (id: string) => Effect.sync(() => items.find((item) => item.id === id))

const failure = (reason: GatewayTimeout | RateLimited) => new ChargeError({ reason, chargeKey: null, requestId: null })

const account = Layer.effectContext(Effect.sync(() => {
  const held: Account = { payments: [], charges: [], reversals: [], silent: 0, limited: 0 }
  const reader: AccountReader = {
    account: null,
    payment: (id) => Effect.suspend(() =>
      held.silent-- > 0 ? Effect.fail(failure(new GatewayTimeout({ operation: "account.payment", timeoutMs: 1 })))
        : held.limited-- > 0 ? Effect.fail(failure(new RateLimited({ retryAfterMs: null, limitReason: null })))
        : one(held.payments)(id)),
    invoiceOf: () => Effect.succeed(undefined),
    charge: one(held.charges),
    reversal: (_, id) => one(held.reversals)(id),
    refundsOf: (chargeId) => Effect.sync(() => held.reversals.filter((reversal) => reversal.chargeId === chargeId && reversal.kind === "refund")),
    disputesOf: (chargeId) => Effect.sync(() => held.reversals.filter((reversal) => reversal.chargeId === chargeId && reversal.kind === "dispute")),
    payments: paged(() => held.payments),
    charges: paged(() => held.charges),
    invoices: paged(() => []),
    origins: () => Effect.succeed({ items: [], next: undefined })
  }
  return Context.make(TestAccount, held).pipe(Context.add(ProcessorAccount, { ...reader, accountOf: () => null, at: () => reader }))
}))

/** Bytes are the event itself; one signature is right. */
const source = Layer.succeed(WebhookSource, {
  open: (body, signature) =>
    signature === "right"
      ? Effect.succeed(JSON.parse(Buffer.from(body).toString()))
      : Effect.fail(new WebhookRefused({ reason: new SignatureWrong() }))
})

const world = Layer.mergeAll(Webhooks.layerNoDeps, Reconciler.layerNoDeps).pipe(
  Layer.provideMerge(Layer.mergeAll(
    source, account, WebhookInbox.layerMemory, Sightings.layerMemory, ReconcileBook.layerMemory, RefundLedger.layerMemory
  )),
  Layer.provideMerge(TestPipeline.layer)
)
/** Namespaces that begin with `acct_` name an account. */
const accounts = Layer.effect(ProcessorAccount, Effect.map(ProcessorAccount, (inner) =>
  ProcessorAccount.of({ ...inner, accountOf: (namespace) => namespace.startsWith("acct_") ? namespace : null })))
const otherCard = Layer.effect(ChargeGateway, Effect.map(ChargeGateway, (inner) =>
  ChargeGateway.of({ ...inner, defaultPaymentMethod: () => Effect.succeed("pm_other") })))
const withDunning = Webhooks.layerNoDeps.pipe(
  Layer.provide(otherCard),
  Layer.provideMerge(accounts),
  Layer.provideMerge(Layer.mergeAll(source, account, WebhookInbox.layerMemory, Sightings.layerMemory, DunningBook.layerMemory)),
  Layer.provideMerge(TestPipeline.layer)
)

const receive = (id: string, subject: string, objectId: string, signature = "right", account: string | null = null) =>
  Effect.flatMap(Webhooks, (webhooks) =>
    webhooks.receive(Buffer.from(JSON.stringify({ id, type: "t", createdMs: 0, account, subject, objectId })), signature))
const deal = Effect.flatMap(Webhooks, ({ settleDue }) => settleDue)
const verdict = (id: string) =>
  Effect.flatMap(WebhookInbox, (inbox) => Effect.map(inbox.recent(100), (events) => events.find(({ event }) => event.id === id)?.verdict))

const request = chargeFor("acme", "2026-07")
const paid = Effect.gen(function*() {
  const outcome = yield* (yield* ChargePipeline).charge(request)
  const id = outcome._tag === "Succeeded" ? outcome.paymentIntentId : ""
  const held = yield* TestAccount
  held.payments.push(paymentOf(id))
  return id
})
const paymentOf = (id: string, of = request): AccountPayment => ({
  id, status: "succeeded", amountMinor: of.amountMinor, amountReceivedMinor: of.amountMinor, currency: of.currency, stripeCustomerId: of.stripeCustomerId,
  createdMs: 0, chargeId: null, paymentMethod: "pm_card_visa",
  identity: { chargeKey: of.chargeKey, customerId: of.customerId, billingPeriod: of.billingPeriod, namespace: of.namespace, item: null, revision: 0, generation: 1 }
})
const reversalOf = (id: string, kind: "refund" | "dispute", paymentIntentId: string, metadata: Record<string, string> = {}): AccountReversal => ({
  id, kind, chargeId: null, paymentIntentId, amountMinor: 400, currency: "usd", status: kind === "dispute" ? "needs_response" : "succeeded", reason: null,
  createdMs: 5, metadata
})

describe("Webhooks", () => {
  it.effect("a dispute shows beside the row, and the later word about it replaces the earlier", () =>
    Effect.gen(function*() {
      const id = yield* paid
      const held = yield* TestAccount
      held.reversals.push(reversalOf("dp_1", "dispute", id))
      yield* receive("evt_1", "dispute", "dp_1")
      yield* deal
      held.reversals[0] = { ...held.reversals[0]!, status: "lost" }
      yield* receive("evt_2", "dispute", "dp_1")
      yield* deal
      const sightings = yield* Sightings
      assert.deepStrictEqual((yield* sightings.movements(request.chargeKey)).map(({ amountMinor, kind, status }) => [kind, amountMinor, status]), [["dispute", 400, "lost"]])
      assert.deepStrictEqual([yield* verdict("evt_1"), yield* verdict("evt_2")], ["noted", "noted"])
      assert.strictEqual((yield* (yield* Ledger).find(request.chargeKey))?.state, "succeeded")
    }).pipe(Effect.provide(world)))

  it.effect("a refund of our own is left to its book; one that only claims to be is noted", () =>
    Effect.gen(function*() {
      const id = yield* paid
      const held = yield* TestAccount
      const refunds = yield* RefundLedger
      const claimed = yield* refunds.claim(new RefundRequest({ chargeKey: request.chargeKey, refundId: "1", amountMinor: request.amountMinor, reason: null, actor: "a", note: "n" }), "w")
      const lease = claimed._tag === "Claimed" ? claimed.refund.lease : undefined
      yield* refunds.settle({
        lease: lease!,
        outcome: new Refunded({ refundKey: lease!.refundKey, chargeKey: request.chargeKey, amountMinor: request.amountMinor, alreadySettled: false, processorRefundId: "re_ours" })
      })
      held.reversals.push(reversalOf("re_ours", "refund", id, { refund_key: lease!.refundKey }), reversalOf("re_theirs", "refund", id, { refund_key: "f".repeat(32) }))
      yield* receive("evt_1", "refund", "re_ours")
      yield* receive("evt_2", "refund", "re_theirs")
      yield* deal
      assert.deepStrictEqual((yield* (yield* Sightings).movements(request.chargeKey)).map((movement) => movement.id), ["re_theirs"])
      assert.deepStrictEqual([yield* verdict("evt_1"), yield* verdict("evt_2")], ["settled", "noted"])
    }).pipe(Effect.provide(world)))

  it.effect("a reversal of nobody's payment, and an object that does not exist, are listed", () =>
    Effect.gen(function*() {
      const held = yield* TestAccount
      held.payments.push({ ...paymentOf("pi_foreign"), identity: null })
      held.reversals.push(reversalOf("dp_foreign", "dispute", "pi_foreign"))
      yield* receive("evt_1", "dispute", "dp_foreign")
      yield* receive("evt_2", "refund", "re_absent")
      yield* receive("evt_3", "charge", "ch_absent")
      yield* deal
      assert.deepStrictEqual(
        (yield* (yield* Sightings).unknown("", 10)).map(({ id, reason }) => [id, reason]),
        [["ch_absent", "missing_there"], ["dp_foreign", "foreign"], ["re_absent", "missing_there"]]
      )
    }).pipe(Effect.provide(world)))

  it.effect("a row that a person is to look at stays as it is, though its object was paid", () =>
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const gateway = yield* ChargeGateway
      const aside = chargeFor("aside", "2026-07", { paymentMethod: "pm_card_visa_chargeDeclinedInsufficientFunds" })
      const { chargeKey } = aside
      yield* (yield* ChargePipeline).charge(aside)
      const { attempt, generation, paymentIntentId } = (yield* ledger.find(chargeKey))!
      yield* ledger.quarantine({ chargeKey, worker: "w", epoch: 1 }, "another amount")
      yield* gateway.confirm({ attempt, chargeKey, generation, request: aside }, { id: paymentIntentId!, attempt, paymentMethod: "pm_card_visa", keySuffix: "" })
      ;(yield* TestAccount).payments.push(paymentOf(paymentIntentId!, aside))
      const before = yield* ledger.events(chargeKey)
      yield* receive("evt_1", "payment", paymentIntentId!)
      yield* deal
      const row = yield* ledger.find(chargeKey)
      assert.deepStrictEqual([yield* verdict("evt_1"), row?.state, row?.quarantine], ["quarantined", "declined", "another amount"])
      assert.deepStrictEqual(yield* ledger.events(chargeKey), before)
    }).pipe(Effect.provide(world)))

  it.effect("a customer of another account who has the same id is another customer", () =>
    Effect.gen(function*() {
      const book = yield* DunningBook
      const { charge } = yield* ChargePipeline
      const refusing = { stripeCustomerId: "cus_Declined", paymentMethod: null }
      const own = chargeFor("own", "2026-07", refusing)
      const theirs = chargeFor("theirs", "2026-07", { ...refusing, namespace: "acct_theirs" })
      for (const request of [own, theirs]) {
        assert.strictEqual((yield* charge(request))._tag, "Declined")
        yield* book.open(request.chargeKey, { actor: "a", reason: "r" })
      }
      const offered = Effect.map(Effect.forEach([own, theirs], ({ chargeKey }) => book.casesOf(chargeKey)), (all) => all.flat().map((view) => view.offered !== null))
      yield* receive("evt_1", "customer", "cus_Declined", "right", "acct_third")
      yield* deal
      assert.deepStrictEqual([yield* verdict("evt_1"), yield* offered], ["ignored", [false, false]])
      yield* receive("evt_2", "customer", "cus_Declined", "right", "acct_theirs")
      yield* deal
      assert.deepStrictEqual([yield* verdict("evt_2"), yield* offered], ["settled", [false, true]])
      yield* receive("evt_3", "customer", "cus_Declined")
      yield* deal
      assert.deepStrictEqual([yield* verdict("evt_3"), yield* offered], ["settled", [true, true]])
    }).pipe(Effect.provide(withDunning)))

  it.effect("the loop deals with what arrives, and refuses what is not signed", () =>
    Effect.gen(function*() {
      const webhooks = yield* Webhooks
      const loop = yield* Effect.forkChild(webhooks.run)
      yield* TestClock.adjust(1)
      assert.strictEqual((yield* Effect.flip(receive("evt_bad", "other", "x", "wrong")))._tag, "WebhookRefused")
      yield* receive("evt_loop", "other", "x")
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* verdict("evt_loop"), "ignored")
      assert.isUndefined(yield* verdict("evt_bad"))
      yield* Fiber.interrupt(loop)
    }).pipe(Effect.provide(world)))
})

/** Sizes of what goes in and out of the scratch book. */
const spied = { added: [] as Array<number>, asked: [] as Array<number>, open: 0 }
const spiedBook = Layer.effect(
  ReconcileBook,
  Effect.map(ReconcileBook, (book) =>
    ReconcileBook.of({
      ...book,
      begin: (id) => Effect.andThen(Effect.sync(() => void (spied.open += 1)), book.begin(id)),
      add: (id, objects) => Effect.andThen(Effect.sync(() => void spied.added.push(objects.length)), book.add(id, objects)),
      objects: (id, keys) => Effect.andThen(Effect.sync(() => void spied.asked.push(keys.length)), book.objects(id, keys)),
      discard: (id) => Effect.andThen(Effect.sync(() => void (spied.open -= 1)), book.discard(id))
    }))
).pipe(Layer.provide(ReconcileBook.layerMemory))

describe("Webhooks that could not be dealt with", () => {
  it.effect("do not all come again in the same moment", () =>
    Effect.gen(function*() {
      const id = yield* paid
      const held = yield* TestAccount
      yield* receive("evt_1", "payment", id)
      yield* receive("evt_2", "payment", id)
      held.silent = 2
      const draws = [0, 1]
      assert.deepStrictEqual(
        yield* Effect.provideService(deal, Random.Random, { nextDoubleUnsafe: () => draws.shift()!, nextIntUnsafe: () => 0 }),
        { done: 0, postponed: 2 }
      )
      yield* TestClock.adjust("499 millis")
      assert.deepStrictEqual(yield* deal, { done: 0, postponed: 0 })
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* deal, { done: 1, postponed: 0 })
      yield* TestClock.adjust("500 millis")
      assert.deepStrictEqual(yield* deal, { done: 1, postponed: 0 })
    }).pipe(Effect.provide(world)))
})

describe("A read that comes too soon", () => {
  it.effect("is made again, and the event does not begin anew for it", () =>
    Effect.gen(function*() {
      const id = yield* paid
      const held = yield* TestAccount
      yield* receive("evt_1", "payment", id)
      held.limited = 2
      const dealing = yield* Effect.forkChild(deal)
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(yield* Fiber.join(dealing), { done: 1, postponed: 0 })
    }).pipe(Effect.provide(world)))
})

describe("Reconciler", () => {
  it.effect("an account that is larger than a page is never held whole", () =>
    Effect.gen(function*() {
      const many = 3000
      const held = yield* TestAccount
      const pipeline = yield* ChargePipeline
      for (let index = 0; index < many; index++) {
        const of = chargeFor(`many-${index}`, "2026-07")
        const outcome = yield* pipeline.charge(of)
        // Every hundredth payment is another amount, every thousandth is not listed at all.
        if (index % 1000 === 1) continue
        held.payments.push({
          ...paymentOf(outcome._tag === "Succeeded" ? outcome.paymentIntentId : "", of),
          ...(index % 100 === 0 ? { amountMinor: 1, amountReceivedMinor: 1 } : {})
        })
      }
      const reconciler = yield* Reconciler
      const differences: Array<Difference> = []
      const report = yield* reconciler.reconcile(
        { billingPeriod: request.billingPeriod, sinceMs: 0, dryRun: true },
        (difference) => Effect.sync(() => void differences.push(difference))
      )
      assert.deepStrictEqual([report.rows, report.ours, report.found], [many, many - 3, { amount_differs: 30, missing_there: 3 }])
      assert.strictEqual(differences.length, 33)
      assert.isTrue(spied.added.every((size) => size <= pageSize) && spied.asked.every((size) => size <= 1000))
      assert.strictEqual(spied.added.reduce((sum, size) => sum + size, 0), many - 3)
      assert.strictEqual(spied.open, 0, "the scratch book is forgotten")
    }).pipe(Effect.provide(Reconciler.layerNoDeps.pipe(
      Layer.provide(spiedBook), Layer.provideMerge(Layer.mergeAll(account, Sightings.layerMemory)), Layer.provideMerge(TestPipeline.layer)
    ))), 60_000)
})
