/** A program that falls silent in the midst of a transaction, as a frozen one does, keeps nobody from its rows for long. */
import { assert, describe, it } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Context, Deferred, Effect, Exit, Fiber, Layer } from "effect"
import { Database, type PoolOptions } from "../src/Database.ts"
import * as TestDatabase from "../src/TestDatabase.ts"

const client = Effect.fnUntraced(function*(url: Parameters<typeof Database.layerUrl>[0], options: PoolOptions) {
  return Context.get(yield* Layer.build(Layer.fresh(Database.layerUrl(url, options))), PgClient.PgClient)
})

describe("a transaction whose program says nothing more", () => {
  it.live("is ended by the server, and those who waited for its rows go on", () =>
    Effect.gen(function*() {
      const url = yield* TestDatabase.postgresUrlEmpty
      const silent = yield* client(url, { silentTransaction: "100 millis" })
      const other = yield* client(url, {})
      yield* other`create table item (id int primary key, state text not null)`
      yield* other`insert into item values (1, 'new')`
      const held = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const frozen = yield* Effect.forkChild(silent.withTransaction(
        silent`update item set state = 'half done'`.pipe(
          Effect.andThen(Deferred.succeed(held, undefined)),
          Effect.andThen(Deferred.await(goOn)),
          Effect.andThen(silent`insert into item values (2, 'late')`)
        )
      ))
      yield* Deferred.await(held)
      // Waits for the row, and has it as soon as the server has given the silent one up.
      assert.deepStrictEqual(yield* other`update item set state = state || ', taken over' returning state`, [{ state: "new, taken over" }])
      yield* Deferred.succeed(goOn, undefined)
      assert.isTrue(Exit.isFailure(yield* Fiber.await(frozen)))
      // Whoever wakes up has lost the transaction and its connection, and no more.
      assert.deepStrictEqual(yield* silent`select id, state from item`, [{ id: 1, state: "new, taken over" }])
    }).pipe(Effect.scoped))

  it.live("is kept five seconds by default, less than it takes to give up a runner", () =>
    Effect.gen(function*() {
      const sql = yield* client(yield* TestDatabase.postgresUrlEmpty, {})
      assert.deepStrictEqual(yield* sql`select current_setting('idle_in_transaction_session_timeout') as kept`, [{ kept: "5s" }])
    }).pipe(Effect.scoped))
})
