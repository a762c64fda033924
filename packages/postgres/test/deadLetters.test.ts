import { DeadLetters, lettersMax } from "@purser/core"
import { deadLettersCases } from "@purser/testkit/DeadLettersConformance"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { PgDeadLetters } from "../src/PgDeadLetters.ts"
import * as TestDatabase from "../src/TestDatabase.ts"

for (const [name, database] of TestDatabase.layers) {
  layer(Layer.provideMerge(PgDeadLetters.layer, database), { timeout: 120_000, excludeTestServices: true })(`dead letters on ${name}`, (it) => {
    deadLettersCases(it)

    it.effect("goes on counting known letters when there is no room for new ones", () =>
      Effect.gen(function*() {
        const sql = yield* SqlClient.SqlClient
        const letters = yield* DeadLetters
        const letter = { transport: "full", principal: null, reason: "MalformedMessage", detail: "", body: Buffer.from("known") }
        yield* letters.bury(letter)
        const known = Effect.map(sql.unsafe<{ readonly times: number }>("select times::int as times from purser.dead_letters where transport = 'full'"), (rows) => rows[0]?.times)
        yield* Effect.repeat(known, { until: (times) => times === 1, schedule: Schedule.spaced("10 millis") })
        yield* sql.unsafe(`insert into purser.dead_letters (digest, first_at, last_at, transport, reason, detail, size_bytes, body)
          select sha256(int4send(n)), now(), now(), 'filler', 'MalformedMessage', '', 0, '' from generate_series(1, ${lettersMax}) n`)
        yield* letters.bury({ ...letter, body: Buffer.from("new") })
        yield* letters.bury(letter)
        yield* Effect.repeat(known, { until: (times) => times === 2, schedule: Schedule.spaced("10 millis") })
        assert.deepStrictEqual(yield* sql.unsafe("select count(*)::int as letters from purser.dead_letters where transport = 'full'"), [{ letters: 1 }])
      }), 60_000)
  })
}
