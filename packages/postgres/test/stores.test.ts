/** What the stores do when the database fails them, and what they leave behind for an auditor. */
import { Ledger, SpendCap } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { retryRolledBack } from "../src/internal/failures.ts"
import { PgLedger } from "../src/PgLedger.ts"
import { PgSpendCap } from "../src/PgSpendCap.ts"
import * as TestDatabase from "../src/TestDatabase.ts"

for (const [name, database] of TestDatabase.layers) {
  const stores = Layer.provideMerge(Layer.mergeAll(PgLedger.layer, PgSpendCap.layer), database)
  layer(stores, { timeout: 120_000 })(`stores on ${name}`, (it) => {
    it.effect("say that they are unavailable, with the server's words, and work again after", () =>
      Effect.gen(function*() {
        const sql = yield* SqlClient.SqlClient
        const ledger = yield* Ledger
        const cap = yield* SpendCap
        const request = chargeFor("unavailable", "2026-11")
        yield* Effect.acquireRelease(
          sql.unsafe("alter schema purser rename to elsewhere"),
          () => Effect.ignore(sql.unsafe("alter schema elsewhere rename to purser"))
        )
        const [a, b] = yield* Effect.all(
          [Effect.flip(ledger.claim(request, "w1")), Effect.flip(ledger.claim(chargeFor("other", "2026-11"), "w1"))],
          { concurrency: "unbounded" }
        )
        assert.strictEqual(a.chargeKey, request.chargeKey)
        assert.notStrictEqual(a.chargeKey, b.chargeKey)
        assert.deepInclude({ ...a.reason }, { _tag: "LedgerUnavailable", operation: "claim" })
        assert.match(a.message, /42P01|3F000/)
        assert.deepStrictEqual([a.isRetryable, a.outcome], [true, "unknown"])
        const refused = yield* Effect.flip(cap.reserve({ ...request, chargeKey: request.chargeKey, attempt: 1, amountMinor: 1 }))
        assert.deepInclude({ ...refused.reason }, { _tag: "CapUnavailable", operation: "reserve" })
        assert.isTrue(refused.isRetryable)
        yield* sql.unsafe("alter schema elsewhere rename to purser")
        assert.strictEqual((yield* ledger.claim(request, "w1"))._tag, "Claimed")
      }))

    it.effect("let nobody change or remove an event", () =>
      Effect.gen(function*() {
        const sql = yield* SqlClient.SqlClient
        const ledger = yield* Ledger
        const request = chargeFor("audited", "2026-11")
        yield* ledger.claim(request, "w1")
        for (const table of ["charge_event_pages", "cap_events"]) {
          for (const act of [`update purser.${table} set at = now()`, `delete from purser.${table}`, `truncate purser.${table}`]) {
            const error = yield* Effect.flip(sql.unsafe(act))
            assert.match(String((error.reason.cause as Error).message), /append-only/, act)
          }
        }
        assert.strictEqual((yield* ledger.events(request.chargeKey)).length, 1)
      }))

    it.effect("note who opened, raised, overran, closed and reopened a cap", () =>
      Effect.gen(function*() {
        const sql = yield* SqlClient.SqlClient
        const cap = yield* SpendCap
        const request = chargeFor("noted", "2026-12")
        yield* cap.open({ ...request, expectedMinor: 100n, headroomPercent: 100 })
        yield* cap.open({ ...request, expectedMinor: 100n, headroomPercent: 100 })
        yield* cap.raise({ ...request, expectedMinor: 200n, headroomPercent: 110, actor: "ada", reason: "late invoices" })
        yield* cap.reserveByForce({ ...request, chargeKey: request.chargeKey, attempt: 1, amountMinor: 250 })
        yield* cap.close(request)
        yield* cap.close(request)
        yield* cap.reopen({ ...request, actor: "ada", reason: "one more" })
        yield* cap.close(request, { actor: "ada", reason: "the month is over" })
        yield* cap.reopen({ ...request, actor: "ada", reason: "another one" })
        yield* cap.reopen({ ...request, actor: "bob", reason: "twice" })
        const events = yield* sql.unsafe(`select act, cap_minor, actor, reason, charge_key from purser.cap_events where billing_period = '2026-12' order by position`)
        assert.deepStrictEqual(events.map((event) => ({ ...event })), [
          { act: "opened", cap_minor: 100n, actor: null, reason: null, charge_key: null },
          { act: "raised", cap_minor: 220n, actor: "ada", reason: "late invoices", charge_key: null },
          { act: "forced", cap_minor: 220n, actor: null, reason: "30 over the cap: the money had moved", charge_key: request.chargeKey },
          { act: "closed", cap_minor: 220n, actor: null, reason: null, charge_key: null },
          { act: "reopened", cap_minor: 220n, actor: "ada", reason: "one more", charge_key: null },
          { act: "closed", cap_minor: 220n, actor: "ada", reason: "the month is over", charge_key: null },
          { act: "reopened", cap_minor: 220n, actor: "ada", reason: "another one", charge_key: null }
        ])
      }))
  })
}

describe("a statement that failed", () => {
  const failing = (reason: SqlError.SqlError["reason"]) => {
    let calls = 0
    const effect = Effect.suspend(() => {
      calls += 1
      return calls < 3 ? Effect.fail(new SqlError.SqlError({ reason })) : Effect.succeed("done")
    })
    return { effect, calls: () => calls }
  }
  const props = { cause: new Error("x"), message: "x", operation: "query" }

  it.effect("is sent again when the database proves that it was rolled back", () =>
    Effect.gen(function*() {
      for (const reason of [new SqlError.DeadlockError(props), new SqlError.SerializationError(props)]) {
        const { calls, effect } = failing(reason)
        assert.strictEqual(yield* retryRolledBack(effect), "done")
        assert.strictEqual(calls(), 3)
      }
    }))

  it.effect("is not sent again when it may have been carried out", () =>
    Effect.gen(function*() {
      const { calls, effect } = failing(new SqlError.ConnectionError(props))
      yield* Effect.flip(retryRolledBack(effect))
      assert.strictEqual(calls(), 1)
    }))
})
