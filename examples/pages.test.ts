/** Programs that the pages show, and the examples that print: all of them in one process, each as its file is. */
import { assert, it } from "@effect/vitest"
import { Database } from "@purser/postgres"
import { postgresUrl } from "@purser/postgres/TestDatabase"
import { ProxyDatabase, ProxyServer, VaultAdmin, VaultDesk } from "@purser/spend-cap-proxy"
import { StripeSim } from "@purser/stripe-sim"
import { Effect, Layer, Redacted } from "effect"
import { readdirSync } from "node:fs"

/** Imports a program with these settings, and answers what it printed. */
const printed = (file: string, env: Readonly<Record<string, string>>) =>
  Effect.promise(async () => {
    const [log, before] = [console.log, process.env]
    const lines: Array<string> = []
    console.log = (...words: ReadonlyArray<unknown>) => void lines.push(words.join(" ").trimEnd())
    process.env = { ...Object.fromEntries(Object.entries(before).filter(([name]) => !name.startsWith("PURSER_"))), ...env }
    try {
      await import(new URL(file, import.meta.url).href)
    } finally {
      console.log = log
      process.env = before
    }
    // Log lines begin with their time.
    return lines.filter((line) => !/^\[\d\d:/.test(line))
  })

const prints: Readonly<Record<string, ReadonlyArray<string>>> = {
  "pages/swapTransport.ts": ["memory", "req-rep", "router-dealer", "push-pull", "pair"].map((name) => `${name} Succeeded`),
  "pages/mockGateway.ts": ["Rejected cap_missing", "Succeeded", "payments: 1"],
  "pages/unknownOutcome.ts": ["ChargeError: money unknown", "Succeeded"],
  "pages/purserFailures.ts": ["Succeeded", "LedgerError"],
  "pages/webhookRoute.ts": ["400"],
  "pages/services.ts": ["750 Success Failure"],
  "pages/stages.ts": ["metered true"],
  "pages/nodeHost.ts": ["finished: 2 of 2", "Succeeded 1 0"],
  "pages/temporalActivity.ts": ["Succeeded", "true"],
  "pages/temporalWorkflow.ts": ["IllegalStateError"],
  "pages/dbosStep.ts": ["Succeeded", "true"],
  "pages/restateStep.ts": ["billing Succeeded", "true"],
  "pages/consoleClient.ts": ["nobody answers"],
  "pages/consoleMount.ts": ["401"],
  "pages/consoleApi.ts": ["true"],
  "pages/consoleServer.ts": ["401"],
  "pages/proxyClient.ts": ["succeeded 4200"],
  "tenants.ts": ["berlin cust_1: Succeeded", "berlin cust_2: Succeeded", "oslo cust_1: Succeeded", "oslo cust_3: Rejected (cap_exceeded)"],
  "agent.ts": [
    "40.00 for a:           succeeded", "the same, a new key:   succeeded (the first one's answer)", "75.00 for b:           refused: charge_too_large",
    "60.00 for b:           succeeded", "0.50 for c:            refused: spend_cap_exceeded", "a payout:              refused: endpoint_not_allowed",
    "0.50 for c, revoked:   refused: vault_key_revoked", "paid, by the books:    10000 minor units"
  ]
}

it("every program of the pages is here", () => {
  assert.includeMembers(Object.keys(prints), readdirSync(new URL("pages", import.meta.url)).map((name) => `pages/${name}`))
})

/** A proxy in front of the simulator, and a vault key of its. */
const Proxy = Layer.unwrap(Effect.map(StripeSim, ({ url }) => ProxyServer.layer({ stripeKey: Redacted.make("rk_test_pages"), upstream: url, port: 0 }))).pipe(
  Layer.provideMerge(VaultDesk.layerStores),
  Layer.provideMerge(ProxyDatabase.migrated(Database.layerMemory)),
  Layer.provideMerge(StripeSim.layer())
)
const vault = {
  name: "pages", billingPeriod: "2026-07", currency: "usd", expectedMinor: 10_000, headroomPercent: 110, allow: [], customers: null, maxPerChargeMinor: null, maxCalls: null,
  duplicateGuard: false, expiresAtMs: null
}

it.live("they print what the pages say, and nobody pays twice", () =>
  Effect.gen(function*() {
    const sim = yield* StripeSim
    const { key } = yield* (yield* VaultAdmin).create(vault)
    const env = {
      PURSER_DATABASE_URL: Redacted.value(yield* postgresUrl), PURSER_STRIPE_URL: sim.url, PURSER_STRIPE_KEY: "rk_test_pages", PURSER_WEBHOOK_SECRET: "whsec_of_the_pages",
      VAULT_KEY: Redacted.value(key), PROXY_PORT: String((yield* ProxyServer).port)
    }
    for (const [file, lines] of Object.entries(prints)) assert.deepStrictEqual(yield* printed(file, env), lines, file)
    const books = yield* sim.books
    assert.deepStrictEqual(books.filter(({ payments }) => payments > 1), [])
    const tenants = books.filter(({ account }) => account !== undefined && account !== null).map(({ account, amountMinor, customer }) => [account, customer, amountMinor])
    assert.sameDeepMembers(tenants, [["acct_1Berlin", "cust_1", 1000], ["acct_1Berlin", "cust_2", 1500], ["acct_1Oslo", "cust_1", 1100]])
    assert.strictEqual(yield* sim.payments("cust_unknown", "2026-07"), 1)
  }).pipe(Effect.scoped, Effect.provide(Proxy)), 180_000)

