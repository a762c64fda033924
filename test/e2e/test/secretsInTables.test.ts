/** What stays after a process has ended: its tables, and what it has said. */
import { assert, describe, it } from "@effect/vitest"
import { Database } from "@purser/postgres"
import { Cause, Effect, Exit, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { atDesk, csv, tens } from "../src/Desk.ts"
import { proxyEnv } from "../src/SpendCapProxy.ts"
import { emptyStores } from "../src/Store.ts"

const planted = { PURSER_STRIPE_KEY: "sk_test_plantedstripe0123456789", PURSER_WEBHOOK_SECRET: "whsec_plantedwebhook" }

/** Every row of every table, as text. */
const tables = (env: Readonly<Record<string, string>>) =>
  Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql.unsafe<{ readonly all: string }>("select database_to_xml(true, false, '')::text as all")
    return row!.all
  }).pipe(Effect.provide(Database.layerUrl(Redacted.make(env["PURSER_DATABASE_URL"] ?? ""))))

describe("secrets", () => {
  it.live("no planted secret is in any table", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      at.write("bills.csv", csv(...tens(2), "c2,2026-07,10.00,USD,cus_2,pm_card_chargeDeclined,base"))
      const run = yield* at.purser(["run", "bills.csv", "--json"], planted)
      assert.strictEqual(run.json?.["succeeded"], 2, run.stderr)
      const vaults = yield* emptyStores.find(([name]) => name === "postgres")![1]
      const proxyKey = { PURSER_PROXY_STRIPE_KEY: planted.PURSER_STRIPE_KEY }
      const made = yield* at.purser(["vault", "create", "--period", "2026-07", "--currency", "usd", "--expected-total", "100.00", "--json"], { ...proxyEnv(vaults, at.sim.url), ...proxyKey })
      const vaultKey = String(made.json?.["key"] ?? "")
      assert.isAbove(vaultKey.length, 20, made.stderr)
      const [billed, capped] = [yield* tables(at.env), yield* tables(vaults)]
      // There was something to look at.
      assert.isTrue(billed.includes("pm_card_chargeDeclined"), "no charge is in the tables")
      assert.isTrue(capped.includes(String(made.json?.["id"])), "no vault is in the tables")
      for (const secret of [...Object.values(planted), vaultKey]) assert.isFalse(`${billed}${capped}`.includes(secret))
    })), 120_000)

  it.live("a process that says a key ends its test", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      const exit = yield* Effect.exit(at.purser(["run", `${planted.PURSER_STRIPE_KEY}.csv`], planted))
      assert.isTrue(Exit.isFailure(exit))
      if (Exit.isFailure(exit)) {
        assert.include(Cause.pretty(exit.cause), "has said what PURSER_STRIPE_KEY holds")
        assert.notInclude(Cause.pretty(exit.cause), planted.PURSER_STRIPE_KEY)
      }
    })), 120_000)
})
