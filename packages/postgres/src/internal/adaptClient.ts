/**
 * What Purser changes about the client of `@effect/sql-pg`, for a server and for PGlite alike: it says which driver it
 * is, a lost connection is an error and never a defect, and on PGlite transactions queue. It changes no SQL.
 */
import type { PgClient } from "@effect/sql-pg"
import { Cause, Effect, Exit, Option, Semaphore } from "effect"
import { SqlError } from "effect/sql"

type Transact = PgClient.PgClient["withTransaction"]

const isLostCleanup = <E>(reason: Cause.Reason<E>): reason is Cause.Die & { readonly defect: SqlError.SqlError } =>
  Cause.isDieReason(reason) && SqlError.isSqlError(reason.defect)

/**
 * The client dies when its ROLLBACK fails, which it does whenever the connection was lost, and turns the failure of the
 * transaction into a defect with it. The server rolls back by itself then: what the transaction failed with stands.
 */
const failInsteadOfDying = (transact: Transact): Transact => <R, E, A>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    let inner: Exit.Exit<A, E> | undefined
    const observed = Effect.onExit(effect, (exit) =>
      Effect.sync(() => {
        inner = exit
      }))
    return Effect.catchCause(transact(observed), (cause): Effect.Effect<A, E | SqlError.SqlError> => {
      const lost = cause.reasons.find(isLostCleanup)
      if (lost === undefined) return Effect.failCause(cause)
      return inner !== undefined && Exit.isFailure(inner) ? Effect.failCause(inner.cause) : Effect.fail(lost.defect)
    })
  })

/**
 * Transactions queue before they reach the one backend of PGlite: a fiber that waits in this queue can be interrupted,
 * one whose BEGIN is on its way cannot.
 */
const queue = (
  transact: Transact,
  transaction: PgClient.PgClient["transactionService"],
  turn: Semaphore.Semaphore
): Transact =>
(effect) =>
  Effect.flatMap(Effect.serviceOption(transaction), (outer) =>
    Option.isSome(outer) ? transact(effect) : turn.withPermit(transact(effect)))

/** Changes the client in place. `effect/cluster` chooses its way of locking by the driver's name. */
export const adaptClient = Effect.fnUntraced(function*(client: PgClient.PgClient, kind: "postgres" | "pglite") {
  const driver = kind === "pglite" ? "pglite" : "pg"
  const typed = failInsteadOfDying(client.withTransaction)
  const withTransaction = kind === "pglite" ? queue(typed, client.transactionService, yield* Semaphore.make(1)) : typed
  const withoutTransforms = client.withoutTransforms.bind(client)
  const own = { driver, withTransaction }
  return Object.assign(client, { ...own, withoutTransforms: () => Object.assign(withoutTransforms(), own) })
})
