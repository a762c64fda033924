/** `purser reconcile` and `purser status --charge` as people and programs meet them. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { atDesk, csv, inPairs, tens } from "../src/Desk.ts"

const live = (title: string, test: Parameters<typeof atDesk>[0]) => it.live(title, () => atDesk(test), 180_000)
const post = (url: string, path: string, params: Readonly<Record<string, string>>) =>
  Effect.promise(() =>
    fetch(`${url}${path}`, {
      method: "POST",
      headers: { authorization: "Bearer sk_test_x", "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams(params).toString()
    }).then((answer) => answer.json() as Promise<Record<string, unknown>>))

describe("purser reconcile", () => {
  live("ends with 0 where nothing differs, with 2 where something remains, and says what it did", (at) =>
    Effect.gen(function*() {
      at.write("bills.csv", csv(...tens(3)))
      yield* at.purser(["run", "bills.csv", "--yes", "--json"])
      const clean = yield* at.purser(["reconcile", "--period", "2026-07", "--json"])
      assert.deepStrictEqual([clean.code, clean.json?.["rows"], clean.json?.["ours"], clean.json?.["remaining"]], [0, 3, 3, 0], clean.stderr)
      const key = (yield* at.purser(["key", "c0", "2026-07", "--item", "base"])).stdout.trim()
      const metadata = {
        "metadata[charge_key]": key, "metadata[customer_id]": "c0", "metadata[billing_period]": "2026-07", "metadata[namespace]": "zmq-billing", "metadata[item]": "base"
      }
      const orphan = yield* post(at.sim.url, "/v1/payment_intents", { amount: "1000", currency: "usd", customer: "cus_0", ...metadata })
      const flags = ["reconcile", "--period", "2026-07", "--orphan-age", "0 seconds"]
      const dry = yield* at.purser([...flags, "--dry-run", "--json"])
      assert.deepStrictEqual([dry.code, dry.json?.["found"], dry.json?.["repaired"], dry.json?.["remaining"]], [2, { orphan: 1 }, 0, 1])
      assert.include(dry.stderr, "nothing was changed")
      const mended = yield* at.purser([...flags, "--report", at.pathOf("differences.ndjson")])
      assert.strictEqual(mended.code, 0, mended.stderr)
      assert.include(mended.stdout, String(orphan["id"]))
      assert.include(mended.stdout, "1 differences repaired, 0 remain")
      const lines = readFileSync(at.pathOf("differences.ndjson"), "utf8").trim().split("\n").map((line) => JSON.parse(line) as Record<string, unknown>)
      assert.deepStrictEqual(lines.map(({ kind, repaired }) => [kind, repaired]), [["orphan", "canceled"]])
      yield* post(at.sim.url, "/v1/payment_intents", {
        amount: "1000", currency: "usd", customer: "cus_0", payment_method: "pm_0", confirm: "true", off_session: "true", ...metadata
      })
      const twice = yield* at.purser([...flags, "--json"])
      assert.deepStrictEqual([twice.code, twice.json?.["found"]], [2, { paid_twice: 1 }])
      const refusals = [
        [["reconcile", "--period", "2026-13"], "2026-13"],
        [["reconcile", "--period", "2026-07", "--orphan-age", "soon"], "--orphan-age"],
        [["reconcile", "--period", "2026-07", "--since", "2026-08-02", "--until", "2026-08-01"], "--until is before --since"],
        [["reconcile", "--period", "2026-07", "--report", at.folder], "is a folder"]
      ] as const
      const ended = yield* inPairs(refusals.map(([args]) => at.purser(args)))
      for (const [index, [args, text]] of refusals.entries()) {
        assert.strictEqual(ended[index]!.code, 1, args.join(" "))
        assert.include(ended[index]!.stderr, text)
      }
    }))

  live("a refund from the Dashboard shows with the charge after it", (at) =>
    Effect.gen(function*() {
      at.write("bills.csv", csv(...tens(1)))
      yield* at.purser(["run", "bills.csv", "--yes", "--json"])
      const key = (yield* at.purser(["key", "c0", "2026-07", "--item", "base"])).stdout.trim()
      const before = yield* at.purser(["status", "--charge", key, "--json"])
      const record = JSON.parse(before.stdout) as { readonly state: string; readonly paymentIntentId: string; readonly elsewhere: ReadonlyArray<unknown> }
      assert.deepStrictEqual([record.state, record.elsewhere], ["succeeded", []])
      const refund = yield* post(at.sim.url, "/v1/refunds", { payment_intent: record.paymentIntentId, amount: "250" })
      assert.strictEqual((yield* at.purser(["reconcile", "--period", "2026-07", "--json"])).code, 0)
      const shown = yield* at.purser(["status", "--charge", key])
      assert.match(shown.stdout, new RegExp(`${String(refund["id"])} +refund +2\\.50 usd +succeeded .* elsewhere`))
      assert.include(shown.stdout, "succeeded")
      assert.strictEqual((yield* at.purser(["status", "--charge", "f".repeat(32)])).code, 1)
      assert.include((yield* at.purser(["status", "--charge", "nonsense"])).stderr, "no charge key")
    }))
})
