/** The duplicate guard: naive clients with a new key for each try, and one payment by the simulator's books. */
import { assert, describe, it } from "@effect/vitest"
import { ProxyServer, VaultAdmin } from "@purser/spend-cap-proxy"
import { StripeSim } from "@purser/stripe-sim"
import { Effect, Fiber, Redacted } from "effect"
import { call, chargeForm, databases, makeVault, newVault, paid, raw, type RawAnswer, refusal, sdk, trailOf, used, world } from "./support/world.ts"

const answers = (got: ReadonlyArray<RawAnswer>) => new Set(got.map(({ json }) => json.id))

for (const [name, database] of databases) {
  describe(`the duplicate guard on ${name}`, () => {
    it.live("gives the second charge of a customer the first one's answer, marked", () =>
      Effect.gen(function*() {
        const proxy = yield* ProxyServer
        const { id, key: vaultKey } = yield* makeVault({ duplicateGuard: true })
        const charge = (key: string, body = chargeForm(500)) => raw(proxy, "/v1/charges", { vaultKey, key, body })
        const first = yield* charge("socket-1")
        const second = yield* charge("socket-2", chargeForm(500, "&metadata[attempt]=2"))
        assert.strictEqual(first.headers["x-spend-proxy"], undefined)
        assert.strictEqual(second.headers["x-spend-proxy"], "duplicate")
        assert.strictEqual(second.headers["idempotent-replayed"], "true")
        assert.deepStrictEqual(second.json, first.json)
        assert.strictEqual((yield* charge("socket-3", chargeForm(400))).json.error.code, "duplicate_differs")
        assert.strictEqual((yield* charge("socket-4", "amount=500&currency=usd&source=tok_visa")).json.error.code, "customer_required")
        const other = yield* charge("other", chargeForm(500).replace("customer=cus_1", "customer=cus_2"))
        assert.notStrictEqual(other.json.id, first.json.id)
        assert.deepStrictEqual(yield* used(id), { heldMinor: 0, paidMinor: 1000, payments: 2, calls: 2 })
        assert.deepStrictEqual(yield* paid, { payments: 2, amountMinor: 1000 })
      }).pipe(Effect.provide(world(database))))

    it.live("settles a first charge whose answer was lost by its own key and form, when the client comes with another key", () =>
      Effect.gen(function*() {
        const proxy = yield* ProxyServer
        const sim = yield* StripeSim
        const { id, key: vaultKey } = yield* makeVault({ duplicateGuard: true })
        yield* sim.faults.add({ match: { method: "POST", path: "/v1/charges" }, action: { kind: "reset", at: "after" } })
        const charge = (key: string) => raw(proxy, "/v1/charges", { vaultKey, key, body: chargeForm(500, `&metadata[attempt]=${key}`) })
        assert.strictEqual((yield* Effect.flip(charge("try-1"))).code, "ECONNRESET")
        assert.deepStrictEqual(yield* used(id), { heldMinor: 500, paidMinor: 0, payments: 0, calls: 1 })
        const second = yield* charge("try-2")
        assert.strictEqual(second.status, 200)
        assert.strictEqual(second.headers["x-spend-proxy"], "duplicate")
        assert.strictEqual(second.json.metadata.attempt, "try-1")
        assert.deepStrictEqual(yield* paid, { payments: 1, amountMinor: 500 })
        assert.deepStrictEqual(yield* used(id), { heldMinor: 0, paidMinor: 500, payments: 1, calls: 1 })
      }).pipe(Effect.provide(world(database))))

    it.live("charges again after a decline, for that was no paid charge", () =>
      Effect.gen(function*() {
        const proxy = yield* ProxyServer
        const { id, key: vaultKey } = yield* makeVault({ duplicateGuard: true })
        const charge = (key: string, source: string) => raw(proxy, "/v1/charges", { vaultKey, key, body: chargeForm(500, `&source=${source}`) })
        assert.strictEqual((yield* charge("d1", "pm_card_visa_chargeDeclined")).status, 402)
        assert.strictEqual((yield* used(id)).heldMinor, 0)
        assert.strictEqual((yield* charge("d2", "pm_card_visa")).status, 200)
        assert.deepStrictEqual(yield* paid, { payments: 1, amountMinor: 500 })
      }).pipe(Effect.provide(world(database))))

    it.live("holds for intents: one intent for each customer, and its paid answer for whoever confirms it again", () =>
      Effect.gen(function*() {
        const { id, key } = yield* makeVault({ duplicateGuard: true })
        const stripe = sdk(key, yield* ProxyServer)
        const bill = (attempt: number) =>
          Effect.gen(function*() {
            const intent = yield* call(() =>
              stripe.paymentIntents.create({ amount: 500, currency: "usd", customer: "cus_1", allowed_payment_method_types: ["card"] }, { idempotencyKey: `pi-${attempt}` }))
            return yield* call(() => stripe.paymentIntents.confirm(intent.id, { payment_method: "pm_card_visa", off_session: true }, { idempotencyKey: `pc-${attempt}` }))
          })
        const first = yield* bill(1)
        const second = yield* bill(2)
        assert.strictEqual(first.status, "succeeded")
        assert.strictEqual(second.status, "succeeded")
        assert.strictEqual(second.id, first.id)
        assert.strictEqual(second.lastResponse.headers["x-spend-proxy"], "duplicate")
        // Another way of paying the same customer is no way round.
        assert.strictEqual(
          (yield* refusal(() => stripe.charges.create({ amount: 500, currency: "usd", customer: "cus_1" }, { idempotencyKey: "other-way" }))).code,
          "duplicate_differs"
        )
        const direct = sdk("sk_test_other", yield* StripeSim)
        const foreign = yield* call(() =>
          direct.paymentIntents.create({ amount: 500, currency: "usd", customer: "cus_1", payment_method: "pm_card_visa", allowed_payment_method_types: ["card"] }))
        assert.strictEqual((yield* refusal(() => stripe.paymentIntents.confirm(foreign.id, {}, { idempotencyKey: "foreign" }))).code, "duplicate_differs")
        assert.deepStrictEqual(yield* used(id), { heldMinor: 0, paidMinor: 500, payments: 1, calls: 2 })
        assert.strictEqual((yield* paid).amountMinor, 500)
      }).pipe(Effect.provide(world(database))))

    it.live("lets three naive workers charge a customer at once, and Stripe charges once", () =>
      Effect.gen(function*() {
        const proxy = yield* ProxyServer
        const sim = yield* StripeSim
        const { key: vaultKey } = yield* makeVault({ duplicateGuard: true, expectedMinor: 100_000 })
        // A slow Stripe, so that all of them are under way together.
        yield* sim.faults.add({ match: { method: "POST", path: "/v1/charges", times: "always" }, action: { kind: "delay", at: "during", delayMs: 20 } })
        const worker = (workerId: number, customer: number) =>
          Effect.gen(function*() {
            for (let attempt = 1; attempt <= 200; attempt++) {
              const got = yield* raw(proxy, "/v1/charges", {
                vaultKey, key: `w${workerId}-c${customer}-a${attempt}`, body: chargeForm(500).replace("cus_1", `cus_${customer}`).replace("=c1", `=c${customer}`)
              })
              // A call under way elsewhere is Stripe's 409: naive clients try again.
              if (got.status === 200) return got
            }
            return yield* Effect.die(new Error("never answered"))
          })
        const customers = Array.from({ length: 10 }, (_, at) => at)
        const got = yield* Effect.forEach([1, 2, 3], (workerId) => Effect.forEach(customers, (customer) => worker(workerId, customer)), { concurrency: "unbounded" })
        assert.strictEqual(answers(got.flat()).size, customers.length)
        const books = yield* sim.books
        assert.strictEqual(books.length, customers.length)
        assert.isTrue(books.every(({ payments }) => payments === 1))
      }).pipe(Effect.provide(world(database))))
  })
}

describe("without the guard", () => {
  it.live("the same naive client pays twice: the cap alone limits it", () =>
    Effect.gen(function*() {
      const proxy = yield* ProxyServer
      const { id, key: vaultKey } = yield* makeVault()
      const charge = (key: string) => raw(proxy, "/v1/charges", { vaultKey, key, body: chargeForm(500) })
      const got = yield* Effect.all([charge("a"), charge("b"), charge("c")], { concurrency: "unbounded" })
      assert.deepStrictEqual(got.map(({ status }) => status).toSorted(), [200, 200, 403])
      assert.deepStrictEqual(yield* paid, { payments: 2, amountMinor: 1000 })
      const trail = yield* trailOf(id)
      assert.strictEqual(trail.filter(({ act }) => act === "decision").length, 3)
      assert.strictEqual(trail.filter(({ act, verdict }) => act === "result" && verdict === "paid").length, 2)
      assert.isTrue(trail.filter(({ act }) => act === "result").every(({ decision, requestId }) => decision !== null && requestId?.startsWith("req_")))
    }).pipe(Effect.provide(world(databases[0][1]))))
})

describe("a call whose own client has left", () => {
  it.live("still answers the next one", () =>
    Effect.gen(function*() {
      const proxy = yield* ProxyServer
      const sim = yield* StripeSim
      const { key: vaultKey } = yield* makeVault({ duplicateGuard: true })
      yield* sim.faults.add({ match: { path: "/v1/charges" }, action: { kind: "delay", at: "after", delayMs: 600_000 } })
      const client = yield* Effect.forkChild(raw(proxy, "/v1/charges", { vaultKey, key: "one", body: chargeForm(500) }))
      const seen: Effect.Effect<void> = Effect.suspend(() => Effect.flatMap(sim.requests, (all) => all.length > 0 ? Effect.void : Effect.andThen(Effect.sleep(5), seen)))
      yield* seen
      yield* Fiber.interrupt(client)
      yield* sim.faults.release
      const again: Effect.Effect<RawAnswer, unknown> = Effect.suspend(() =>
        raw(proxy, "/v1/charges", { vaultKey, key: "two", body: chargeForm(500) }).pipe(
          Effect.filterOrElse(({ status }) => status !== 409, () => Effect.andThen(Effect.sleep(10), again))
        ))
      assert.strictEqual((yield* again).headers["x-spend-proxy"], "duplicate")
      assert.deepStrictEqual(yield* paid, { payments: 1, amountMinor: 500 })
    }).pipe(Effect.provide(world(databases[0][1]))))
})

for (const [name, database] of databases) {
  describe(`a period and currency on ${name}`, () => {
    it.live("has one vault: a second is refused, and another key of it has the same cap and guard, also when the first is revoked", () =>
      Effect.gen(function*() {
        const proxy = yield* ProxyServer
        const admin = yield* VaultAdmin
        const { separateReason, ...plain } = newVault({ duplicateGuard: true })
        const { key: firstKey, vault } = yield* admin.create(plain)
        const again = yield* Effect.flip(admin.create(plain))
        assert.include(again.message, `purser vault rotate ${vault.id}`)
        const charge = (vaultKey: Redacted.Redacted, key: string, customer: string, amount = 500) =>
          raw(proxy, "/v1/charges", { vaultKey: Redacted.value(vaultKey), key, body: `amount=${amount}&currency=usd&customer=${customer}` })
        const first = yield* charge(firstKey, "1", "cus_1")
        assert.strictEqual(first.status, 200)
        const { key: secondKey, vault: both } = yield* admin.addKey({ vault: vault.id, revokesOthers: false, expiresAtMs: null, reason: "two fleets" })
        assert.deepStrictEqual(both.keys.map(({ revokedAtMs }) => revokedAtMs), [null, null])
        // Both keys at once: one customer is charged once, and what both spend stays under one cap.
        const [one, two] = yield* Effect.all([charge(firstKey, "2", "cus_2"), charge(secondKey, "3", "cus_2")], { concurrency: "unbounded" })
        const settled = [one, two].filter(({ status }) => status === 200)
        assert.isAbove(settled.length, 0)
        assert.strictEqual((yield* charge(secondKey, "4", "cus_3")).json.error.code, "spend_cap_exceeded")
        const { key: thirdKey, vault: rotated } = yield* admin.addKey({ vault: vault.id, revokesOthers: true, expiresAtMs: null, reason: "leaked" })
        assert.deepStrictEqual(rotated.keys.map(({ revokedAtMs }) => revokedAtMs === null), [false, false, true])
        assert.strictEqual((yield* charge(firstKey, "5", "cus_4", 100)).json.error.code, "vault_key_revoked")
        assert.strictEqual((yield* charge(secondKey, "6", "cus_4", 100)).json.error.code, "vault_key_revoked")
        const paidBefore = yield* charge(thirdKey, "7", "cus_1")
        assert.deepStrictEqual([paidBefore.headers["x-spend-proxy"], paidBefore.json.id], ["duplicate", first.json.id])
        assert.strictEqual((yield* charge(thirdKey, "8", "cus_3")).json.error.code, "spend_cap_exceeded")
        assert.deepStrictEqual(yield* paid, { payments: 2, amountMinor: 1000 })
        // Revoked for good, the period still has its vault; a new key of it knows what was paid.
        assert.isTrue((yield* admin.revoke(vault.id, "over")).keys.every(({ revokedAtMs }) => revokedAtMs !== null))
        assert.include((yield* Effect.flip(admin.create(plain))).message, "rotate")
        const { key: lastKey } = yield* admin.addKey({ vault: vault.id, revokesOthers: false, expiresAtMs: null, reason: "again" })
        assert.strictEqual((yield* charge(lastKey, "9", "cus_1")).headers["x-spend-proxy"], "duplicate")
        assert.strictEqual((yield* Effect.flip(admin.addKey({ vault: "vault_none", revokesOthers: false, expiresAtMs: null, reason: "" }))).reason._tag, "VaultMissing")
        // Another currency, and a second cap on purpose.
        yield* admin.create({ ...plain, currency: "eur" })
        const apart = yield* admin.create({ ...plain, separateReason: separateReason! })
        assert.isTrue(apart.vault.separate)
        const [line] = yield* admin.log({ vault: apart.vault.id, after: 0, limit: 1 })
        assert.strictEqual(line?.detail, separateReason)
      }).pipe(Effect.provide(world(database))))
  })
}

for (const [name, database] of databases) {
  describe(`a Stripe that breaks its word, on ${name}`, () => {
    it.live("and carries one key out twice is counted twice, alarmed on the trail, and the key is stopped", () =>
      Effect.gen(function*() {
        const proxy = yield* ProxyServer
        const sim = yield* StripeSim
        const { id, key: vaultKey } = yield* makeVault()
        yield* sim.setIdempotency(false)
        const charge = (key = "same") => raw(proxy, "/v1/charges", { vaultKey, key, body: chargeForm(400) })
        assert.strictEqual((yield* charge()).status, 200)
        assert.strictEqual((yield* charge()).status, 200)
        assert.deepStrictEqual(yield* used(id), { heldMinor: 0, paidMinor: 800, payments: 2, calls: 1 })
        assert.strictEqual((yield* charge()).json.error.code, "idempotency_key_stopped")
        assert.strictEqual((yield* charge("other")).json.error.code, "spend_cap_exceeded")
        assert.deepStrictEqual(yield* paid, { payments: 2, amountMinor: 800 })
        const alarms = (yield* trailOf(id)).filter(({ act }) => act === "alarm")
        assert.deepStrictEqual(alarms.map(({ amountMinor, code, idempotencyKey }) => [code, idempotencyKey, amountMinor]), [["stripe_repeated_a_key", "same", 400]])
        assert.match(alarms[0]!.detail!, /with ch_\S+ before, now with ch_\S+:/)
      }).pipe(Effect.provide(world(database))))
  })

  describe(`the duplicate guard and what is not final, on ${name}`, () => {
    const intentForm = "amount=500&currency=usd&customer=cus_1&payment_method=pm_card_visa&allowed_payment_method_types[0]=card"

    it.live("reads an intent that is not paid before it answers with it: paid past the proxy it is settled, canceled it stands in nobody's way", () =>
      Effect.gen(function*() {
        const proxy = yield* ProxyServer
        const sim = yield* StripeSim
        const { id, key: vaultKey } = yield* makeVault({ duplicateGuard: true })
        const direct = sdk("sk_test_other", sim)
        const create = (key: string) => raw(proxy, "/v1/payment_intents", { vaultKey, key, body: intentForm })
        const first = yield* create("1")
        assert.strictEqual(first.json.status, "requires_confirmation")
        const open = yield* create("2")
        assert.deepStrictEqual([open.json.id, open.json.status, open.headers["x-spend-proxy"]], [first.json.id, "requires_confirmation", "duplicate"])
        yield* call(() => direct.paymentIntents.cancel(first.json.id))
        const second = yield* create("3")
        assert.notStrictEqual(second.json.id, first.json.id)
        assert.strictEqual(second.headers["x-spend-proxy"], undefined)
        yield* call(() => direct.paymentIntents.confirm(second.json.id, { off_session: true }))
        assert.strictEqual((yield* used(id)).heldMinor, 500)
        const third = yield* create("4")
        assert.deepStrictEqual([third.json.id, third.json.status, third.headers["x-spend-proxy"]], [second.json.id, "succeeded", "duplicate"])
        const { heldMinor, paidMinor } = yield* used(id)
        assert.deepStrictEqual({ heldMinor, paidMinor }, { heldMinor: 0, paidMinor: 500 })
        assert.deepStrictEqual(yield* paid, { payments: 1, amountMinor: 500 })
      }).pipe(Effect.provide(world(database))))

    it.live("gives no answer across terms: another currency is refused, another account has its own charge", () =>
      Effect.gen(function*() {
        const proxy = yield* ProxyServer
        const sim = yield* StripeSim
        yield* sim.connect("acct_other")
        const { id, key: vaultKey } = yield* makeVault({ duplicateGuard: true })
        const charge = (key: string, body: string, headers: Record<string, string> = {}) => raw(proxy, "/v1/charges", { vaultKey, key, body, headers })
        const first = yield* charge("1", chargeForm(500))
        assert.strictEqual((yield* charge("2", "amount=500&currency=eur&customer=cus_1")).json.error.code, "currency_not_allowed")
        assert.strictEqual((yield* charge("3", "amount=500&customer=cus_1")).json.error.code, "currency_not_allowed")
        const other = yield* charge("4", chargeForm(500), { "stripe-account": "acct_other" })
        assert.strictEqual(other.status, 200, JSON.stringify(other.json))
        assert.strictEqual(other.headers["x-spend-proxy"], undefined)
        assert.notStrictEqual(other.json.id, first.json.id)
        const again = yield* charge("5", chargeForm(500), { "stripe-account": "acct_other" })
        assert.deepStrictEqual([again.json.id, again.headers["x-spend-proxy"]], [other.json.id, "duplicate"])
        assert.strictEqual((yield* used(id)).paidMinor, 1000)
      }).pipe(Effect.provide(world(database))))
  })
}
