/** A ledger that was restored from a backup: `purser doctor` sees it, names the way out, and that way pays nobody twice. */
import { assert, describe, it } from "@effect/vitest"
import { StripeSim } from "@purser/stripe-sim"
import { Effect } from "effect"
import { cpSync, rmSync } from "node:fs"
import { join } from "node:path"
import { csv, type Desk, desk } from "../src/Desk.ts"
import { freePort } from "../src/Proxy.ts"
import { temporaryFolder } from "../src/Store.ts"

interface Finding {
  readonly check: string
  readonly level: string
  readonly text: string
}

const ledgerFinding = Effect.fnUntraced(function*(at: Desk, env: Readonly<Record<string, string>> = {}) {
  const ended = yield* at.purser(["doctor", "2026-07", "--json"], { PURSER_ENDPOINT: `tcp://127.0.0.1:${yield* freePort}`, ...env })
  assert.isDefined(ended.json, ended.stderr)
  const found = (ended.json!["findings"] as ReadonlyArray<Finding>).filter(({ check }) => check === "ledger")
  assert.strictEqual(found.length, 1, ended.stdout)
  return { code: ended.code, level: found[0]!.level, text: found[0]!.text }
})

describe("a restored ledger", () => {
  for (const gateway of ["payment_intents", "charges", "invoices"] as const) {
    it.live(`is told by what Stripe has of ours, and mended, with ${gateway}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const folder = yield* temporaryFolder
        const backup = yield* temporaryFolder
        const data = join(folder, "data")
        const at = yield* desk(Effect.succeed({ PURSER_DATA_DIR: data, PURSER_STRIPE_GATEWAY: gateway }))
        const row = (customer: string) => `${customer},2026-07,10.00,USD,cus_${customer},pm_saved_${customer},base`
        const first = at.write("first.csv", csv(row("a")))
        const second = at.write("second.csv", csv(row("b"), row("c")))
        const bill = (file: string, env: Readonly<Record<string, string>> = {}) => at.purser(["run", file, "--expected-total", "100.00", "--yes", "--json"], env)
        assert.strictEqual((yield* bill(first)).code, 0)
        cpSync(data, join(backup, "data"), { recursive: true })
        const backedUpAt = new Date(yield* (yield* StripeSim).nowMs)
        assert.strictEqual((yield* bill(second)).code, 0)
        assert.strictEqual((yield* ledgerFinding(at)).level, "ok")

        rmSync(data, { recursive: true })
        cpSync(join(backup, "data"), data, { recursive: true })
        const found = yield* ledgerFinding(at)
        assert.deepStrictEqual([found.code, found.level], [1, "fail"], found.text)
        for (const word of ["does not know 2 of 3 objects", "its newest event is of", "It was restored from a backup", "PURSER_RESTORE_POINT", "purser reconcile"]) {
          assert.include(found.text, word)
        }
        const restored = { PURSER_RESTORE_POINT: new Date(backedUpAt.getTime() - 60_000).toISOString() }
        const told = yield* ledgerFinding(at, restored)
        assert.deepStrictEqual([told.code, told.level], [0, "warn"], told.text)
        const reconciled = yield* at.purser(["reconcile", "--period", "2026-07", "--since", restored.PURSER_RESTORE_POINT, "--json"], restored)
        assert.strictEqual(reconciled.code, 0, reconciled.stdout + reconciled.stderr)
        assert.deepInclude(reconciled.json, { repaired: 2, remaining: 0 })
        assert.strictEqual((yield* ledgerFinding(at)).level, "ok")
        yield* bill(first, restored)
        yield* bill(second, restored)
        const books = yield* at.paid
        assert.deepStrictEqual(books.map(({ customer, payments }) => [customer, payments]).toSorted(), [["a", 1], ["b", 1], ["c", 1]])
      })).pipe(Effect.provide(StripeSim.layer())), 240_000)
  }

  it.live("another ledger's charges are a warning, since they may be just that", () =>
    Effect.scoped(Effect.gen(function*() {
      const [one, two] = [yield* desk(), yield* desk()]
      const run = yield* one.purser(["run", one.write("bill.csv", csv("a,2026-07,10.00,USD,cus_a,pm_card_visa,base")), "--expected-total", "100.00", "--yes"])
      assert.strictEqual(run.code, 0, run.stderr)
      yield* two.purser(["status"])
      const found = yield* ledgerFinding(two)
      assert.strictEqual(found.level, "warn")
      assert.include(found.text, "Another ledger charges this account, or this one was restored from a backup")
    })).pipe(Effect.provide(StripeSim.layer())), 240_000)
})
