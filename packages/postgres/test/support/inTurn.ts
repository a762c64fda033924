/** Statements that meet at a locked row, in an order that a test chooses. */
import { Deferred, Effect, Fiber, Schedule } from "effect"
import { SqlClient } from "effect/sql"

/** How many backends of this database wait for a lock. */
const waiting = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.map(
    sql<{ readonly waiting: number }>`select count(*)::integer as waiting from pg_locks l join pg_stat_activity a using (pid)
      where not l.granted and a.datname = current_database()`,
    ([row]) => row!.waiting
  ))

/** Comes back when so many backends of this database wait for a lock. */
export const untilWaiting = (count: number) =>
  Effect.repeat(waiting, { until: (found) => found >= count, schedule: Schedule.spaced("5 millis") })

/** Runs `meanwhile` while another connection holds the rows that `lock` selects. */
export const whileLocked = Effect.fnUntraced(function*<A, E, R>(lock: string, params: ReadonlyArray<unknown>, meanwhile: Effect.Effect<A, E, R>) {
  const sql = yield* SqlClient.SqlClient
  const locked = yield* Deferred.make<void>()
  const done = yield* Deferred.make<void>()
  // In a fiber of its own, so that nothing of `meanwhile` runs on the connection of the transaction.
  const holder = yield* Effect.forkChild(sql.withTransaction(
    Effect.andThen(sql.unsafe(lock, params), Effect.andThen(Deferred.succeed(locked, undefined), Deferred.await(done)))
  ))
  yield* Deferred.await(locked)
  return yield* Effect.ensuring(meanwhile, Effect.andThen(Deferred.succeed(done, undefined), Effect.ignore(Fiber.join(holder))))
})

/**
 * Both begin while the row is held, each with the row as it was before the other: `first` is first in the queue, and `second` goes on
 * when `first` has committed.
 */
export const inTurn = Effect.fnUntraced(function*<A, E, R, B, F, S>(lock: string, params: ReadonlyArray<unknown>, first: Effect.Effect<A, E, R>, second: Effect.Effect<B, F, S>) {
  const [one, two] = yield* whileLocked(lock, params, Effect.gen(function*() {
    const one = yield* Effect.forkDetach(first)
    yield* untilWaiting(1)
    const two = yield* Effect.forkDetach(second)
    yield* untilWaiting(2)
    return [one, two] as const
  }))
  return [yield* Fiber.join(one), yield* Fiber.join(two)] as const
})
