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

/** Runs `meanwhile` while `act` is done on another connection and not committed; nothing comes of it where `end` fails. */
export const whileOpen = Effect.fnUntraced(function*<A, E, R, B, F, S, G, T = never>(act: Effect.Effect<B, F, S>, meanwhile: Effect.Effect<A, E, R>, end: Effect.Effect<void, G, T> = Effect.void) {
  const sql = yield* SqlClient.SqlClient
  const done = yield* Deferred.make<B, F>()
  const over = yield* Deferred.make<void>()
  // In a fiber of its own, so that nothing of `meanwhile` runs on the connection of the transaction.
  const holder = yield* Effect.forkChild(sql.withTransaction(
    Effect.onExit(act, (exit) => Deferred.done(done, exit)).pipe(Effect.andThen(Deferred.await(over)), Effect.andThen(end))
  ))
  yield* Deferred.await(done)
  return yield* Effect.ensuring(meanwhile, Effect.andThen(Deferred.succeed(over, undefined), Effect.ignore(Fiber.join(holder))))
})

/** Runs `meanwhile` while another connection holds the rows that `lock` selects. */
export const whileLocked = <A, E, R>(lock: string, params: ReadonlyArray<unknown>, meanwhile: Effect.Effect<A, E, R>) =>
  whileOpen(Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(lock, params)), meanwhile)

/** Begins, and comes back when it waits for a lock as the one after so many others, or has ended without. */
const begun = Effect.fnUntraced(function*<A, E, R>(act: Effect.Effect<A, E, R>, count: number) {
  const fiber = yield* Effect.forkDetach(act)
  yield* Effect.raceFirst(untilWaiting(count), Fiber.await(fiber))
  return fiber
})

/** What `late` answers that began before `act` was committed, and waited for that. */
export const after = Effect.fnUntraced(function*<A, E, R, B, F, S>(act: Effect.Effect<B, F, S>, late: Effect.Effect<A, E, R>) {
  return yield* Fiber.join(yield* whileOpen(act, begun(late, 1)))
})

/**
 * Both begin while the row is held, each with the row as it was before the other: `first` is first in the queue, and `second` goes on
 * when `first` has committed.
 */
export const inTurn = Effect.fnUntraced(function*<A, E, R, B, F, S>(lock: string, params: ReadonlyArray<unknown>, first: Effect.Effect<A, E, R>, second: Effect.Effect<B, F, S>) {
  const [one, two] = yield* whileLocked(lock, params, Effect.gen(function*() {
    return [yield* begun(first, 1), yield* begun(second, 2)] as const
  }))
  return [yield* Fiber.join(one), yield* Fiber.join(two)] as const
})
