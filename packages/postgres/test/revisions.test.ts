/** What the database itself holds of revisions: a charge has the number and what it revises, or neither; and a charge is revised once. */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { SqlClient } from "effect/sql"
import { integer, text } from "../src/internal/params.ts"
import { successor } from "../src/internal/refundSql.ts"
import * as TestDatabase from "../src/TestDatabase.ts"
import { genericPlanOf } from "./support/plans.ts"

const keyOf = (number: number) => number.toString(16).padStart(32, "0")
const insert = `insert into purser.charges (charge_key, namespace, customer_id, billing_period, amount_minor, currency, stripe_customer_id, state, planned_at, updated_at, revision, revises)
  values ($1::text, 'n', 'c', '2026-11', 1, 'usd', 'cus', 'planned', purser.now(), purser.now(), $2::integer, $3::text)`

for (const [name, database] of TestDatabase.layers) {
  layer(database, { timeout: 60_000 })(`revisions on ${name}`, (it) => {
    it.effect("have a number and a charge that they revise, and no charge has two", () =>
      Effect.gen(function*() {
        const sql = yield* SqlClient.SqlClient
        const isWritten = (number: number, revision: number, revises: string | null) =>
          Effect.map(Effect.exit(sql.unsafe(insert, [text(keyOf(number)), integer(revision), text(revises)])), Exit.isSuccess)
        assert.isTrue(yield* isWritten(1, 0, null))
        assert.isTrue(yield* isWritten(2, 1, keyOf(1)))
        assert.isTrue(yield* isWritten(3, 2, keyOf(2)))
        for (const [revision, revises] of [[1, null], [-1, null], [0, keyOf(3)], [-1, keyOf(3)], [5, keyOf(1)]] as const) {
          assert.isFalse(yield* isWritten(4, revision, revises), `${revision} of ${revises}`)
          const later = yield* Effect.exit(sql.unsafe("update purser.charges set revision = $2::integer, revises = $3::text where charge_key = $1::text",
            [text(keyOf(3)), integer(revision), text(revises)]))
          assert.isTrue(Exit.isFailure(later), `later, ${revision} of ${revises}`)
        }
      }))

    it.effect("are found by what they revise", () =>
      Effect.map(genericPlanOf("successor", successor, [text(keyOf(1))]), (plan) => assert.match(plan, /Index Scan using charges_revises/)))
  })
}
