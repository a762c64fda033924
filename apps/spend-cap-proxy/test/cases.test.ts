/** Cases of the field at the proxy's door, named after their ids: ways round it, many at once, and the border of a period. */
import { assert, layer } from "@effect/vitest"
import { DatabaseClock } from "@purser/postgres"
import { ProxyServer, VaultAdmin, VaultStore } from "@purser/spend-cap-proxy"
import { StripeSim } from "@purser/stripe-sim"
import { Context, Effect, Layer, Schedule } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { call, chargeForm, databases, makeVault, paid, proxyLayer, raw, sdk, used, world } from "./support/world.ts"

const fixture = readFileSync(join(import.meta.dirname, "fixtures/F3-requests.txt"), "utf8").trimEnd().split("\n")
const sent = Effect.flatMap(StripeSim, (sim) => sim.requests)
const monthOf = (period: string) => (amount: number, more = "") => chargeForm(amount, more).replace("2026-07", period)

/** What becomes of each line: refused with its code, or counted as it is spelled for Stripe. */
const ends: ReadonlyArray<readonly [status: number, code: string | undefined]> = [
  [401, "vault_key_unknown"], [200, undefined], [200, undefined], [403, "endpoint_not_allowed"], [200, undefined], [404, "resource_missing"], [403, "endpoint_not_allowed"],
  [403, "endpoint_not_allowed"], [403, "endpoint_not_allowed"], [400, "query_not_allowed"], [403, "period_not_allowed"]
]

for (const [name, database] of databases) {
  layer(world(database), { excludeTestServices: true, timeout: 60_000 })(`cases at the proxy on ${name}`, (it) => {
    it.effect("F3: every line of the file is counted or refused, and every refusal is written down without a key", () =>
      Effect.gen(function*() {
        const proxy = yield* ProxyServer
        const july = yield* makeVault({ expectedMinor: 100_000 })
        const june = yield* makeVault({ billingPeriod: "2026-06" })
        const expired = yield* makeVault({ expiresAtMs: Math.floor(yield* DatabaseClock.nowMs) - 1000 })
        const before = (yield* paid).amountMinor
        const got = yield* Effect.forEach(fixture, (line, at) => {
          const [, path, rest = ""] = /^POST (\S+)(?: +(.*))?$/.exec(line) ?? assert.fail(line)
          const key = /Bearer (\S+)/.exec(rest)?.[1] ?? (rest.startsWith("(vault key of 2026-06") ? june.key : july.key)
          return raw(proxy, path!, { vaultKey: key, key: `f3-${name}-${at}`, body: path!.endsWith("/confirm") ? "payment_method=pm_card_visa" : chargeForm(100) })
        })
        assert.deepStrictEqual(got.map(({ json, status }) => [status, json.error?.code]), ends.map((end) => [...end]))
        const late = yield* raw(proxy, "/v1/charges", { vaultKey: expired.key, key: `f3-${name}-late`, body: chargeForm(100) })
        assert.deepStrictEqual([late.status, late.json.error.code], [403, "vault_key_expired"])

        // Two charges are paid, one intent is held, and by Stripe's books there is nothing beside them.
        const { heldMinor, paidMinor } = yield* used(july.id)
        assert.deepStrictEqual([paidMinor, heldMinor, (yield* paid).amountMinor - before], [200, 100, 200])
        for (const { id } of [june, expired]) assert.deepStrictEqual(yield* used(id), { heldMinor: 0, paidMinor: 0, payments: 0, calls: 0 })
        const moves = (yield* sent).filter(({ idempotencyKey, method }) => method === "POST" && idempotencyKey?.startsWith(`f3-${name}`) === true)
        assert.deepStrictEqual(moves.map(({ path }) => path), ["/v1/payment_intents", "/v1/charges", "/v1/charges"])

        // All of the store's, since a key that is none names no vault.
        const trail = yield* (yield* VaultAdmin).log({ vault: undefined, after: 0, limit: 1000 })
        const refused = ends.flatMap(([status, code], at) => status === 200 || status === 404 ? [] : [[`f3-${name}-${at}`, code!]])
        for (const [key, code] of [...refused, [`f3-${name}-late`, "vault_key_expired"]]) {
          assert.isTrue(trail.some((line) => line.idempotencyKey === key && line.verdict === "refused" && line.code === code), `${key} ${code}`)
        }
        const kept = JSON.stringify([trail, got.map(({ bytes }) => bytes.toString("utf8"))])
        for (const secret of ["sk_test_RAW_PLACEHOLDER", july.key, june.key, expired.key]) assert.notInclude(kept, secret)
      }))

    it.effect("F5: July's key is refused for August, also where it would answer with July's payment; August's own cap is untouched by a full July", () =>
      Effect.gen(function*() {
        const proxy = yield* ProxyServer
        const july = yield* makeVault({ duplicateGuard: true })
        const august = yield* makeVault({ billingPeriod: "2026-08", duplicateGuard: true })
        let calls = 0
        const charge = (vaultKey: string, body: string) =>
          Effect.map(raw(proxy, "/v1/charges", { vaultKey, key: `f5-${name}-${calls += 1}`, body }), ({ json, status }) => json.error?.code ?? status)
        const inJuly = monthOf("2026-07")
        const inAugust = monthOf("2026-08")
        assert.strictEqual(yield* charge(july.key, inJuly(1100)), 200)
        const before = (yield* sent).length
        for (const body of [inAugust(1100), inAugust(1100).replace("2026-08", "2026-08-01/2026-08-31"), inJuly(1100, "&metadata[billing_period]=2026-08")]) {
          assert.include(["period_not_allowed", "parameter_repeated"], yield* charge(july.key, body))
        }
        assert.strictEqual(yield* charge(july.key, inJuly(100).replace("cus_1", "cus_2")), "spend_cap_exceeded")
        assert.strictEqual((yield* sent).length, before)
        assert.strictEqual(yield* charge(august.key, inAugust(1100)), 200)
        const direct = sdk("sk_test_other", yield* StripeSim)
        const intent = yield* call(() => direct.paymentIntents.create({ amount: 100, currency: "usd", customer: "cus_3", payment_method: "pm_card_visa", allowed_payment_method_types: ["card"], metadata: { billing_period: "2026-08" } }))
        const confirmed = yield* raw(proxy, `/v1/payment_intents/${intent.id}/confirm`, { vaultKey: (yield* makeVault()).key, key: `f5-${name}-c`, body: "off_session=true" })
        assert.strictEqual(confirmed.json.error.code, "period_not_allowed")
        // A form that names no period counts in the key's own.
        assert.strictEqual(yield* charge(august.key, "amount=100&currency=usd&customer=cus_2"), "spend_cap_exceeded")
        assert.deepStrictEqual([(yield* used(july.id)).paidMinor, (yield* used(august.id)).paidMinor], [1100, 1100])
      }))
  })
}

const [, [, postgres]] = databases
const rounds = 100

layer(world(postgres), { excludeTestServices: true, timeout: 120_000 })("cases at four proxies of one store", (it) => {
  it.effect("F1: of 16 calls of 10.00 under a cap of 110.00, set off together at four proxies, exactly 11 are paid, each time", () =>
    Effect.gen(function*() {
      // As processes are: what one decides another learns from the database alone.
      const others = yield* Effect.forEach([2, 3, 4], () => Layer.build(Layer.fresh(Layer.provide(proxyLayer(), VaultStore.layer))))
      const proxies = [yield* ProxyServer, ...others.map((built) => Context.get(built, ProxyServer))]
      for (let round = 1; round <= rounds; round++) {
        const { id, key: vaultKey } = yield* makeVault({ expectedMinor: 10_000 })
        const before = yield* paid
        const got = yield* Effect.forEach(
          Array.from({ length: 16 }, (_, at) => at),
          (at) => raw(proxies[at % 4]!, "/v1/charges", { vaultKey, key: `f1-${round}-${at}`, body: chargeForm(1000) }),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(
          [got.filter(({ status }) => status === 200).length, got.filter(({ json }) => json.error?.code === "spend_cap_exceeded").length],
          [11, 5],
          `round ${round}`
        )
        const after = yield* paid
        // A payment is answered just before it is written down.
        const written = yield* Effect.repeat(used(id), { until: ({ heldMinor }) => heldMinor === 0, schedule: Schedule.spaced("5 millis") })
        assert.deepStrictEqual([after.payments - before.payments, after.amountMinor - before.amountMinor, written.paidMinor], [11, 11_000, 11_000])
      }
    }))
})
