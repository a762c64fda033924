/** Connected accounts, named by a request's namespace or by the configuration; each account's own books are the judge. */
import { assert, describe, it } from "@effect/vitest"
import { chargeKeyOf } from "@purser/core"
import { namespaceFor } from "@purser/stripe"
import { Effect } from "effect"
import { atDesk, type Desk } from "../src/Desk.ts"

const accounts = ["acct_1Berlin", "acct_1Oslo"] as const
const header = "customer_id,billing_period,amount,currency,stripe_customer_id,payment_method,namespace"
const file = (...lines: ReadonlyArray<string>) => [header, ...lines].join("\n")
const rows = [
  "cust_1,2026-07,10.00,USD,cus_1,pm_1,",
  ...accounts.map((account, i) => `cust_1,2026-07,${11 + i}.00,USD,cus_1,pm_1,${namespaceFor("zmq-billing", account)}`)
]

/** Which account each call was for. */
const callsOf = (at: Desk) =>
  Effect.map(at.sim.requests, (requests) =>
    requests.filter(({ method }) => method === "POST").map(({ account, idempotencyKey }) => [account ?? "own", idempotencyKey?.split(":")[0]] as const))

describe("the account of a charge", () => {
  for (const gateway of ["payment_intents", "charges", "invoices"] as const) {
    it.live(`is named by its namespace: one customer and period of three accounts are three charges, with ${gateway}`, () =>
      atDesk(Effect.fnUntraced(function*(at) {
        at.write("bills.csv", file(...rows))
        const env = { PURSER_STRIPE_GATEWAY: gateway }
        const ended = yield* at.purser(["run", "bills.csv", "--json"], env)
        assert.strictEqual(ended.code, 0, ended.stderr)
        assert.strictEqual(ended.json?.["succeeded"], 3)
        assert.strictEqual((yield* at.purser(["run", "bills.csv", "--json"], env)).code, 0)
        const identity = { customerId: "cust_1", billingPeriod: "2026-07" }
        const keys = new Map<string, string>([
          // Without an account the key is what it always was.
          ["own", chargeKeyOf({ ...identity, namespace: "zmq-billing" })],
          ...accounts.map((account) => [account, chargeKeyOf({ ...identity, namespace: namespaceFor("zmq-billing", account) })] as const)
        ])
        for (const [account, key] of yield* callsOf(at)) assert.strictEqual(keys.get(account), key)
        const books = (yield* at.sim.books).filter(({ payments }) => payments > 0)
        assert.deepStrictEqual(
          books.map(({ account, amountMinor, payments }) => [account ?? "own", amountMinor, payments]).toSorted(),
          [["own", 1000, 1], ["acct_1Berlin", 1100, 1], ["acct_1Oslo", 1200, 1]].toSorted()
        )
        const caps = yield* at.purser(["cap", "show", "2026-07", "--json"])
        assert.strictEqual((JSON.parse(caps.stdout) as ReadonlyArray<unknown>).length, 3)
      })), 120_000)
  }

  it.live("is the one of the configuration where the request names none", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      at.write("bills.csv", file(rows[0]!, rows[1]!))
      const ended = yield* at.purser(["run", "bills.csv", "--json"], { PURSER_STRIPE_ACCOUNT: "acct_1Oslo" })
      assert.strictEqual(ended.code, 0, ended.stderr)
      const books = (yield* at.sim.books).filter(({ payments }) => payments > 0)
      assert.deepStrictEqual(books.map(({ account, amountMinor }) => [account, amountMinor]).toSorted(), [["acct_1Berlin", 1100], ["acct_1Oslo", 1000]])
    })), 120_000)

  it.live("does not change under a charge: what was begun for one account is not looked for in another", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      at.write("bills.csv", file(rows[0]!))
      const killed = yield* at.purser(["run", "bills.csv", "--json"], { PURSER_STRIPE_ACCOUNT: "acct_1Oslo", PURSER_FAULT: "after-confirm:1" })
      assert.strictEqual(killed.signal, "SIGKILL", killed.stderr)
      const other = yield* at.purser(["run", "bills.csv", "--json"], {
        PURSER_STRIPE_ACCOUNT: "acct_1Berlin", PURSER_RUN_PATIENCE: "3 seconds", PURSER_GATEWAY_ATTEMPTS: "2"
      })
      assert.strictEqual(other.code, 2, other.stderr)
      const finished = yield* at.purser(["run", "bills.csv", "--json"], { PURSER_STRIPE_ACCOUNT: "acct_1Oslo" })
      assert.strictEqual(finished.code, 0, finished.stderr)
      const books = (yield* at.sim.books).filter(({ payments }) => payments > 0)
      assert.deepStrictEqual(books.map(({ account, payments }) => [account, payments]), [["acct_1Oslo", 1]])
    })), 120_000)
})
