/** The store alone: a batch, and what a value that the database refuses does to the others of it. */
import { assert, describe, it } from "@effect/vitest"
import { ProxyServer, VaultStore, type Wish } from "@purser/spend-cap-proxy"
import { Effect, Redacted, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { chargeForm, databases, makeVault, paid, raw, used, world } from "./support/world.ts"

const wish = (vaultKey: string, key: string, more: Partial<Wish> = {}): Wish => ({
  vaultKey: Redacted.make(vaultKey), kind: "charge", method: "POST", path: "/v1/charges", key, fingerprint: key, amountMinor: 100, currency: "usd", customer: `cus_${key}`,
  intentId: null, body: null, period: null, account: "", fetched: false, problem: null, ...more
})

for (const [name, database] of databases) {
  describe(`bytes and lengths that a database refuses, on ${name}`, () => {
    it.live("are the caller's 400, and no other call of the batch fails for them", () =>
      Effect.gen(function*() {
        const store = yield* VaultStore
        const { id, key } = yield* makeVault()
        const bad: ReadonlyArray<Partial<Wish>> = [{ customer: "cus_\0" }, { currency: "u\0" }, { amountMinor: 0 }, { amountMinor: 1e300 }]
        const wishes = [0, 1, 2, 3, 4, 5, 6, 7].map((at) => wish(key, `b${at}`, at % 2 === 0 ? bad[at / 2] : {}))
        const got = yield* Effect.forEach(wishes, (one) => Effect.result(store.decide(one)), { concurrency: "unbounded" })
        assert.deepStrictEqual(
          got.map((one) => one._tag === "Success" ? one.success.verdict : one.failure.reason._tag),
          ["VaultRefused", "permitted", "VaultRefused", "permitted", "VaultRefused", "permitted", "VaultRefused", "permitted"]
        )
        assert.strictEqual((yield* used(id)).heldMinor, 400)
      }).pipe(Effect.provide(world(database))))

    it.live("are refused before they reach it, where a form or a path holds them", () =>
      Effect.gen(function*() {
        const proxy = yield* ProxyServer
        const { id, key: vaultKey } = yield* makeVault({ duplicateGuard: true })
        const long = "x".repeat(4000)
        const forms = [
          "amount=100&currency=usd&customer=cus_%00", "amount=100&currency=u%00&customer=cus_1", chargeForm(100, "&metadata[a]=%00"), chargeForm(100, "&metadata[%00]=a"),
          `amount=100&currency=usd&customer=${long}`, `amount=100&currency=${long}&customer=cus_1`
        ]
        const calls = [
          ...forms.map((body, at) => raw(proxy, "/v1/charges", { vaultKey, key: `bad-${at}`, body })),
          raw(proxy, `/v1/payment_intents/${long}/confirm`, { vaultKey, key: "bad-path", body: "off_session=true" }),
          raw(proxy, "/v1/charges", { vaultKey, key: "good", body: chargeForm(100) })
        ]
        const got = yield* Effect.all(calls, { concurrency: "unbounded" })
        assert.deepStrictEqual(got.map(({ status }) => status), [400, 400, 400, 400, 400, 400, 403, 200])
        assert.deepStrictEqual(yield* paid, { payments: 1, amountMinor: 100 })
        assert.deepStrictEqual(yield* used(id), { heldMinor: 0, paidMinor: 100, payments: 1, calls: 1 })
      }).pipe(Effect.provide(world(database))))
  })
}

describe("what the embedded store keeps when its machine stops", () => {
  it.live("is every decision at once, and what came of it in a moment, also when no other call comes", () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const store = yield* VaultStore
      const { key } = yield* makeVault()
      const Loose = Schema.Struct({ loose: Schema.Boolean })
      const isLoose = Effect.map(
        Effect.flatMap(sql`select pg_current_wal_flush_lsn() < pg_current_wal_insert_lsn() as loose`, Schema.decodeUnknownEffect(Schema.NonEmptyArray(Loose))),
        ([{ loose }]) => loose
      )
      const verdict = yield* store.decide(wish(key, "k"))
      assert.isFalse(yield* isLoose)
      yield* store.record({
        verdict, kind: "charge", key: "k", effect: "paid", objectId: "ch_1", intentId: null, amountMinor: 100, status: 200, requestId: null, replayed: false, detail: null, answer: null
      })
      assert.isTrue(yield* isLoose)
      const kept: typeof isLoose = Effect.flatMap(isLoose, (loose) => loose ? Effect.andThen(Effect.sleep(5), kept) : Effect.succeed(true))
      assert.isTrue(yield* kept)
    }).pipe(Effect.provide(world(databases[0][1]))))
})
