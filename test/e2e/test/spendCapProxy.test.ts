/** The spend-cap proxy as processes: killed, cut off from its store, several over one store, and behind it a naive sender. */
import { assert, describe, it } from "@effect/vitest"
import { StripeSim } from "@purser/stripe-sim"
import { Effect } from "effect"
import { csv, desk, paidAtLeast, tens } from "../src/Desk.ts"
import { proxyTo } from "../src/Proxy.ts"
import { purser, start } from "../src/Purser.ts"
import { charge, createVault, type Got, proxyEnv, realKey, startProxy, vaultOf } from "../src/SpendCapProxy.ts"
import { emptyStores } from "../src/Store.ts"

const total = Effect.map(Effect.flatMap(StripeSim, (sim) => sim.books), (books) => ({
  payments: books.reduce((sum, { payments }) => sum + payments, 0),
  amountMinor: books.reduce((sum, { amountMinor }) => sum + amountMinor, 0)
}))
const reached = Effect.map(Effect.flatMap(StripeSim, (sim) => sim.requests), (requests) => requests.length)
const never = 600_000

const postgres = emptyStores.find(([name]) => name === "postgres")![1]

/** A store behind a connection that a test cuts. */
const cuttable = Effect.gen(function*() {
  const url = new URL((yield* postgres)["PURSER_DATABASE_URL"]!)
  const proxy = yield* proxyTo(Number(url.port))
  url.hostname = "127.0.0.1"
  url.port = String(proxy.port)
  return { proxy, env: { PURSER_DATABASE_URL: url.href } }
})

for (const [name, store] of emptyStores) {
  describe(`a proxy on ${name}`, () => {
    it.live("that is killed between Stripe's work and its own record: the room stays taken, and the same key settles it", () =>
      Effect.scoped(Effect.gen(function*() {
        const sim = yield* StripeSim
        const env = proxyEnv(yield* store, sim.url)
        const { id, key } = yield* createVault(env, 1000)
        const first = yield* startProxy(env)
        yield* sim.faults.add({ match: { path: "/v1/charges" }, action: { kind: "delay", at: "after", delayMs: never } })
        const client = yield* Effect.forkChild(Effect.result(charge(first.url, key, "one", "c1", 600)))
        yield* first.meanwhile(paidAtLeast(sim, 1))
        yield* first.kill("SIGKILL")
        assert.strictEqual((yield* first.ended).signal, "SIGKILL")
        client.interruptUnsafe()
        yield* sim.faults.release
        assert.deepStrictEqual(yield* vaultOf(env, id), { heldMinor: 600, paidMinor: 0 })
        const second = yield* startProxy(env)
        assert.strictEqual((yield* charge(second.url, key, "two", "c2", 501)).code, "spend_cap_exceeded")
        const again = yield* charge(second.url, key, "one", "c1", 600)
        assert.strictEqual(again.status, 200)
        assert.strictEqual(again.headers["idempotent-replayed"], "true")
        assert.deepStrictEqual(yield* vaultOf(env, id), { heldMinor: 0, paidMinor: 600 })
        assert.deepStrictEqual(yield* total, { payments: 1, amountMinor: 600 })
      })).pipe(Effect.provide(StripeSim.layer())), 120_000)

    it.live("obeys purser vault from the next call on, and tells no key to anyone", () =>
      Effect.scoped(Effect.gen(function*() {
        const sim = yield* StripeSim
        const env = { ...proxyEnv(yield* store, sim.url), PURSER_LOG_LEVEL: "All" }
        const proxy = yield* startProxy(env)
        // Where the store is a folder, the running proxy has it open and answers for it.
        const { id, key } = yield* createVault(env, 1000, { maxPerChargeMinor: 600, name: "july" })
        let count = 0
        const send = (amountMinor: number) => Effect.map(charge(proxy.url, key, `k${count += 1}`, `c${count}`, amountMinor), (got) => got.code ?? got.status)
        const vault = Effect.fnUntraced(function*(...args: ReadonlyArray<string>) {
          const ended = yield* purser(["vault", ...args], env)
          assert.strictEqual(ended.code, 0, ended.stderr)
          return ended
        })
        assert.strictEqual(yield* send(601), "charge_too_large")
        assert.strictEqual(yield* send(600), 200)
        assert.strictEqual(yield* send(600), "spend_cap_exceeded")
        yield* vault("raise", id, "--expected-total", "20.00", "--reason", "more customers")
        assert.strictEqual(yield* send(600), 200)
        yield* vault("kill", "--reason", "drill")
        assert.strictEqual(yield* send(100), "vault_kill_switch")
        yield* vault("kill", "--off")
        assert.strictEqual(yield* send(100), 200)
        const [listed, shown, figures, drawn] = yield* Effect.all(
          [vault("list"), vault("show", id), vault("gauge", id, "--once", "--json"), vault("gauge", "--once")],
          { concurrency: "unbounded" }
        )
        assert.include(listed.stdout, id)
        assert.include(listed.stdout, "july")
        assert.include(shown.stdout, "POST:/v1/payment_intents/*/confirm")
        const gauge = figures.json!
        assert.deepStrictEqual([gauge["capMinor"], gauge["paidMinor"], gauge["leftMinor"], gauge["payments"]], [2200, 1300, 900, 3])
        assert.match(drawn.stdout, /█+·+ 13\.00 paid, 0\.00 held of 22\.00 usd/)
        yield* vault("revoke", id, "--reason", "over")
        assert.strictEqual(yield* send(100), "vault_key_revoked")
        const [all, lines, missing] = yield* Effect.all(
          [vault("log", id, "--all", "--json"), vault("log", id, "--lines", "2", "--json"), purser(["vault", "show", "vault_none"], env)],
          { concurrency: "unbounded" }
        )
        const trail = all.stdout.trim().split("\n").map((line) => JSON.parse(line))
        assert.deepStrictEqual(
          trail.map(({ act, code, verdict }) => code ?? (act === "decision" ? verdict : act === "result" ? `${act} ${verdict}` : act)),
          ["created", "charge_too_large", "permitted", "result paid", "spend_cap_exceeded", "raised", "permitted", "result paid", "vault_kill_switch", "permitted", "result paid",
            "revoked", "vault_key_revoked"]
        )
        const [, , decision, result] = trail
        assert.deepStrictEqual([decision.path, decision.amountMinor, decision.idempotencyKey, decision.customer], ["/v1/charges", 600, "k2", "cus_c2"])
        assert.deepStrictEqual([result.decision, result.status, result.verdict], [decision.seq, 200, "paid"])
        assert.match(result.requestId, /^req_/)
        assert.strictEqual(lines.stdout.trim().split("\n").length, 2)
        assert.strictEqual(missing.code, 1)
        assert.include(missing.stderr, "there is no vault vault_none")
        yield* proxy.kill("SIGTERM")
        const { code, stderr, stdout } = yield* proxy.ended
        assert.strictEqual(code, 0, stderr)
        for (const secret of [realKey, key]) {
          for (const text of [stdout, stderr, listed.stdout, JSON.stringify(trail)]) assert.notInclude(text, secret)
        }
      })).pipe(Effect.provide(StripeSim.layer())), 180_000)
  })
}

describe("purser vault on a folder", () => {
  const embedded = emptyStores.find(([name]) => name !== "postgres")![1]

  it.live("keeps nobody out while its gauge runs; speaks of its own settings; and has one vault for each period and currency", () =>
    Effect.scoped(Effect.gen(function*() {
      const sim = yield* StripeSim
      const env = proxyEnv(yield* embedded, sim.url)
      const first = yield* purser(["vault", "create", "--period", "2026-07", "--currency", "usd", "--expected-total", "10.00", "--headroom", "1.20", "--duplicate-guard", "--json"], env)
      assert.strictEqual(first.code, 0, first.stderr)
      const [id, key] = [String(first.json?.["id"]), String(first.json?.["key"])]
      const gauge = yield* start(["vault", "gauge"], env)
      yield* gauge.says(id)
      const vault = (...args: ReadonlyArray<string>) => purser(["vault", ...args], env)
      const killed = yield* vault("kill", "--reason", "drill")
      assert.strictEqual(killed.code, 0, killed.stderr)
      const proxy = yield* startProxy(env)
      assert.strictEqual((yield* charge(proxy.url, key, "k", "c1", 100)).code, "vault_kill_switch")
      assert.strictEqual((yield* vault("kill", "--off")).code, 0)
      assert.strictEqual((yield* charge(proxy.url, key, "k", "c1", 100)).status, 200)
      const second = yield* vault("create", "--period", "2026-07", "--currency", "usd", "--expected-total", "10.00")
      assert.strictEqual(second.code, 1)
      assert.include(second.stderr, `purser vault rotate ${id}`)
      const rotated = yield* vault("rotate", id, "--revoke-old", "--reason", "leaked", "--json")
      assert.strictEqual((yield* charge(proxy.url, key, "k2", "c1", 100)).code, "vault_key_revoked")
      assert.strictEqual((yield* charge(proxy.url, String(rotated.json?.["key"]), "k3", "c1", 100)).headers["x-spend-proxy"], "duplicate")
      assert.deepStrictEqual(yield* total, { payments: 1, amountMinor: 100 })
      const raised = yield* vault("raise", id, "--expected-total", "20.00", "--reason", "more")
      assert.include(raised.stderr, "The cap was 12.00 (10.00 × 1.20) usd, and is 24.00 (20.00 × 1.20) usd.")
      const create = (...more: ReadonlyArray<string>) => vault("create", "--currency", "usd", "--expected-total", "10.00", ...more)
      const [silent, apart, expired, lower, released, other, listed] = yield* Effect.all([
        create("--period", "2026-07", "--separate"),
        create("--period", "2026-07", "--separate", "--reason", "pilot"),
        create("--period", "2026-08", "--expires", "2020-01-01"),
        vault("raise", id, "--expected-total", "0.50", "--reason", "less"),
        vault("release", id, "--customer", "cus_none", "--reason", "x"),
        purser(["proxy", "--port", "0"], env),
        vault("list")
      ], { concurrency: "unbounded" })
      assert.include(silent.stderr, "--reason")
      assert.strictEqual(apart.code, 0, apart.stderr)
      assert.include(expired.stderr, "has passed")
      assert.include(lower.stderr, "cannot be lower")
      assert.include(released.stderr, "holds nothing")
      assert.strictEqual(other.code, 1)
      assert.include(other.stderr, "PURSER_PROXY_DATABASE_URL")
      assert.notInclude(other.stderr, "(PURSER_DATABASE_URL)")
      assert.include(listed.stdout, "used")
    })).pipe(Effect.provide(StripeSim.layer())), 180_000)
})

describe("a proxy whose store is away", () => {
  it.live("answers 503 in Stripe's shape and forwards nothing; a call that was under way is counted when the store is back", () =>
    Effect.scoped(Effect.gen(function*() {
      const sim = yield* StripeSim
      const { env: store, proxy: wire } = yield* cuttable
      const env = proxyEnv(store, sim.url)
      const { id, key } = yield* createVault(env, 1000)
      const proxy = yield* startProxy(env)
      assert.strictEqual((yield* charge(proxy.url, key, "before", "c0", 100)).status, 200)
      yield* wire.cut
      const before = yield* reached
      const refused = yield* charge(proxy.url, key, "during", "c1", 100)
      assert.deepStrictEqual([refused.status, refused.code, refused.json.error.type], [503, "spend_cap_unavailable", "api_error"])
      assert.match(String(refused.headers["request-id"]), /^req_proxy_/)
      assert.strictEqual(yield* reached, before)
      yield* wire.mend
      assert.strictEqual((yield* charge(proxy.url, key, "during", "c1", 100)).status, 200)
      // Money moves while the store goes away: its client is told the truth, and the room stays taken.
      yield* sim.faults.add({ match: { path: "/v1/charges" }, action: { kind: "delay", at: "after", delayMs: never } })
      const client = yield* Effect.forkChild(charge(proxy.url, key, "under way", "c2", 500))
      yield* proxy.meanwhile(paidAtLeast(sim, 3))
      yield* wire.cut
      yield* sim.faults.release
      while (client.pollUnsafe() === undefined) yield* Effect.sleep(5)
      assert.strictEqual((yield* Effect.flatten(Effect.sync(() => client.pollUnsafe()!))).status, 200)
      yield* wire.mend
      assert.strictEqual((yield* charge(proxy.url, key, "too much", "c3", 401)).code, "spend_cap_exceeded")
      assert.strictEqual((yield* charge(proxy.url, key, "under way", "c2", 500)).headers["idempotent-replayed"], "true")
      // A client has its answer before it is counted.
      assert.deepStrictEqual(yield* Effect.repeat(vaultOf(env, id), { until: ({ heldMinor }) => heldMinor === 0 }), { heldMinor: 0, paidMinor: 700 })
      assert.deepStrictEqual(yield* total, { payments: 3, amountMinor: 700 })
    })).pipe(Effect.provide(StripeSim.layer())), 120_000)
})

describe("four proxies over one store", () => {
  it.live("let sixteen clients have exactly what fits", () =>
    Effect.scoped(Effect.gen(function*() {
      const sim = yield* StripeSim
      const env = proxyEnv(yield* postgres, sim.url)
      const { id, key } = yield* createVault(env, 5000)
      const proxies = yield* Effect.forEach([1, 2, 3, 4], () => startProxy(env), { concurrency: 2 })
      // 5500 fits 55 of 160 charges of 100: all sixteen ask at once, each at every proxy in turn.
      const got = yield* Effect.forEach(Array.from({ length: 16 }, (_, client) => client), (client) =>
        Effect.forEach(Array.from({ length: 10 }, (_, at) => at), (at) => charge(proxies[(client + at) % 4]!.url, key, `${client}-${at}`, `c${client}-${at}`, 100)),
      { concurrency: "unbounded" })
      const counts = { paid: 0, over: 0, other: 0 }
      const count = (one: Got) => one.status === 200 ? "paid" : one.code === "spend_cap_exceeded" ? "over" : "other"
      for (const one of got.flat()) counts[count(one)] += 1
      assert.deepStrictEqual(counts, { paid: 55, over: 105, other: 0 })
      assert.deepStrictEqual(yield* total, { payments: 55, amountMinor: 5500 })
      assert.deepStrictEqual(yield* vaultOf(env, id), { heldMinor: 0, paidMinor: 5500 })
    })).pipe(Effect.provide(StripeSim.layer())), 180_000)

  it.live("share one duplicate guard: the same customer at all four is charged once", () =>
    Effect.scoped(Effect.gen(function*() {
      const sim = yield* StripeSim
      const env = proxyEnv(yield* postgres, sim.url)
      const { key } = yield* createVault(env, 5000, { duplicateGuard: true })
      const proxies = yield* Effect.forEach([1, 2, 3, 4], () => startProxy(env), { concurrency: 2 })
      const tries = (at: number): Effect.Effect<Got, unknown> =>
        Effect.suspend(() => {
          let attempt = 0
          const once: Effect.Effect<Got, unknown> = Effect.suspend(() =>
            Effect.flatMap(charge(proxies[at]!.url, key, `p${at}-${attempt += 1}`, "one", 100), (got) => got.status === 409 ? once : Effect.succeed(got)))
          return once
        })
      const got = yield* Effect.forEach([0, 1, 2, 3], tries, { concurrency: "unbounded" })
      assert.deepStrictEqual(got.map(({ status }) => status), [200, 200, 200, 200])
      assert.strictEqual(new Set(got.map(({ json }) => json.id)).size, 1)
      assert.deepStrictEqual(yield* total, { payments: 1, amountMinor: 100 })
    })).pipe(Effect.provide(StripeSim.layer())), 180_000)
})

describe("the engine behind a proxy", () => {
  it.live("bills a file with a vault key, and a naive sender who hammers while the ledger is away stays under the cap", () =>
    Effect.scoped(Effect.gen(function*() {
      const { env: ledger, proxy: wire } = yield* cuttable
      const at = yield* desk(Effect.succeed(ledger))
      const { sim } = at
      const env = proxyEnv(yield* postgres, sim.url)
      // The file's 4 rows of 10.00, and room for 9 more by the headroom and what is expected.
      const { id, key } = yield* createVault(env, 12_000)
      const proxy = yield* startProxy(env)
      const engine = { PURSER_STRIPE_URL: proxy.url, PURSER_STRIPE_KEY: key, PURSER_SPEND_CAP: "proxy" }
      at.write("bills.csv", csv(...tens(4)))
      const run = yield* at.purser(["run", "bills.csv", "--json", "--yes"], engine)
      assert.deepStrictEqual([run.code, run.json?.["succeeded"]], [0, 4], run.stderr)
      assert.deepStrictEqual(yield* vaultOf(env, id), { heldMinor: 0, paidMinor: 4000 })
      yield* wire.cut
      assert.strictEqual((yield* at.purser(["status"])).code, 1)
      const got = yield* Effect.forEach(Array.from({ length: 40 }, (_, n) => n), (n) => charge(proxy.url, key, `naive-${n}`, `n${n}`, 1000), { concurrency: 8 })
      assert.strictEqual(got.filter(({ status }) => status === 200).length, 9)
      assert.deepStrictEqual(yield* total, { payments: 13, amountMinor: 13_000 })
      yield* wire.mend
      // The engine meets the same cap: what does not fit any more is refused before Stripe, and recorded.
      at.write("more.csv", csv("late,2026-07,10.00,USD,cus_late,pm_late,base"))
      const more = yield* at.purser(["run", "more.csv", "--json", "--yes"], engine)
      assert.deepStrictEqual([more.code, more.json?.["rejected"]], [2, 1], more.stderr)
      assert.deepStrictEqual(yield* total, { payments: 13, amountMinor: 13_000 })
      assert.isAtMost((yield* total).amountMinor, 13_200)
    })).pipe(Effect.provide(StripeSim.layer())), 180_000)
})
