/** The other gateways through the command: real processes killed with SIGKILL, and started again by the same command. */
import { assert, describe, it } from "@effect/vitest"
import type { FaultPlace } from "@purser/core"
import { StripeSim } from "@purser/stripe-sim"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { csv, tens } from "../src/Desk.ts"
import { purser } from "../src/Purser.ts"
import { stores, temporaryFolder } from "../src/Store.ts"

const places: ReadonlyArray<FaultPlace> = ["after-create", "after-attach", "before-confirm", "after-confirm"]
const rows = 10

for (const gateway of ["charges", "invoices"] as const) {
  for (const [name, store] of stores) {
    describe(`kill -9 with ${gateway} on ${name}`, () => {
      // The embedded database takes its time to start; what differs between the gateways shows on either.
      for (const place of name === "pglite" ? places.slice(-1) : places) {
        it.live(`at ${place}, then the same command again: one payment per row`, () =>
          Effect.scoped(Effect.gen(function*() {
            const sim = yield* StripeSim
            const folder = yield* temporaryFolder
            const path = join(folder, "invoices.csv")
            writeFileSync(path, csv(...tens(rows)))
            const env = { ...yield* store, PURSER_STRIPE_URL: sim.url, PURSER_STRIPE_GATEWAY: gateway }
            const killed = yield* purser(["run", path, "--json", "--concurrency", "3"], { ...env, PURSER_FAULT: `${place}:5` })
            assert.strictEqual(killed.signal, "SIGKILL", killed.stderr)
            const finished = yield* purser(["run", path, "--json"], env)
            assert.strictEqual(finished.code, 0, finished.stderr)
            const books = (yield* sim.books).filter((entry) => entry.payments > 0)
            assert.strictEqual(books.length, rows)
            assert.isTrue(books.every((entry) => entry.payments === 1 && entry.amountMinor === 1000))
            assert.strictEqual(finished.json?.["succeeded"], rows)
            const paths = new Set((yield* sim.requests).filter((entry) => entry.method === "POST").map((entry) => entry.path.split("/")[2]))
            assert.deepStrictEqual(paths, new Set(gateway === "invoices" ? [gateway, "invoiceitems"] : [gateway]))
          })).pipe(Effect.provide(StripeSim.layer())), 120_000)
      }
    })
  }
}

describe("another gateway while charges are open", () => {
  it.live("what was begun goes on as it was begun, and nothing is paid twice", () =>
    Effect.scoped(Effect.gen(function*() {
      const sim = yield* StripeSim
      const folder = yield* temporaryFolder
      const path = join(folder, "invoices.csv")
      writeFileSync(path, csv(...tens(rows)))
      const env = { ...yield* stores[1]![1], PURSER_STRIPE_URL: sim.url }
      const cut = yield* purser(["run", path, "--json", "--concurrency", "3"], { ...env, PURSER_STRIPE_GATEWAY: "charges", PURSER_FAULT: "after-confirm:4" })
      assert.strictEqual(cut.signal, "SIGKILL", cut.stderr)
      const again = yield* purser(["run", path, "--json", "--concurrency", "3"], { ...env, PURSER_FAULT: "after-attach:3" })
      assert.strictEqual(again.signal, "SIGKILL", again.stderr)
      const finished = yield* purser(["run", path, "--json"], { ...env, PURSER_STRIPE_GATEWAY: "charges" })
      assert.strictEqual(finished.code, 0, finished.stderr)
      const books = (yield* sim.books).filter((entry) => entry.payments > 0)
      assert.strictEqual(books.length, rows)
      assert.isTrue(books.every((entry) => entry.payments === 1))
      const confirmed = (yield* sim.requests).filter((entry) => entry.path.endsWith("/confirm"))
      assert.isTrue(confirmed.length > 0)
    })).pipe(Effect.provide(StripeSim.layer())), 120_000)
})
