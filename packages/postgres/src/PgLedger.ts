/**
 * The ledger on PostgreSQL (or PGlite): the protocol's state machine as batched statements, leases on the database's clock.
 *
 * Calls of many fibers share a statement by group commit. It never retries what may have been carried out: a connection
 * that is lost in the middle is `LedgerUnavailable`, and every call is safe to repeat. A claim that is repeated after
 * such a doubt finds its own lease in progress and waits it out.
 */
import {
  type AttachAnswer, type AttachInput, ChargeKey, chargeKeyOf, chargeTerms, type ClaimAnswer, type Lease, Ledger, type LedgerError, Principal, revisedIdentity,
  type SettleAnswer, type SettleInput
} from "@purser/core"
import { Array as Arr, type Config, Duration, Effect, Exit, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { decodeRows, EventRow, eventOf, NamespaceRow, NewestRow, RecordRow, recordOf, takenOf, TakenRow, TotalRow, totalOf } from "./internal/chargeRow.ts"
import { eventPageMax } from "./internal/eventPages.ts"
import { isBadInput, ledgerUnavailable, retryRolledBack, type StoreFailure } from "./internal/failures.ts"
import * as GroupCommit from "./internal/groupCommit.ts"
import { leaseConfig } from "./internal/leaseConfig.ts"
import { type Answer as FirstAnswer, elsewhere, makeFirstClaims } from "./internal/firstClaimBatches.ts"
import * as Batches from "./internal/ledgerBatches.ts"
import * as Reads from "./internal/ledgerReads.ts"
import * as Sql from "./internal/ledgerWrites.ts"
import { bigint, boolean, double, integer, text, texts } from "./internal/params.ts"
import { takeExpired } from "./internal/takeExpired.ts"
import { takeWaiting } from "./internal/takeOverSql.ts"
import { makeUpkeep } from "./internal/upkeep.ts"
import * as Watch from "./internal/watchSql.ts"
import { WrittenPages } from "./internal/WrittenPages.ts"
import type { BatchedOperation } from "./PostgresMetrics.ts"

/** Settings of the ledger. */
export interface PgLedgerOptions {
  /** How long a claim holds a charge. */
  readonly lease: Duration.Input
  /** Calls in one statement at the most; 512 by default. */
  readonly batchMax?: number
  /** Statements of one operation under way at once; 1 by default. */
  readonly inFlight?: number
}

const sameTerms = (a: Batches.ClaimInput, b: Batches.ClaimInput) => JSON.stringify(chargeTerms(a.request)) === JSON.stringify(chargeTerms(b.request))

/** A second claim of the same terms in one batch comes after the first. */
const afterClaim = (answer: ClaimAnswer): ClaimAnswer =>
  answer._tag === "Claimed" ? { _tag: "InProgress", leaseLeftMs: answer.charge.leaseLeftMs } : answer

const Key = Schema.Struct({ charge_key: ChargeKey })
const ReleaseRow = Schema.Struct({ charge_key: ChargeKey, attempt: Schema.Int })
const MovedRow = Schema.Struct({ moved: Schema.Int })

const make = Effect.fnUntraced(function*(options: PgLedgerOptions) {
  const sql = yield* SqlClient.SqlClient
  const leaseMs = Duration.toMillis(Duration.fromInputUnsafe(options.lease))
  const upkeep = yield* makeUpkeep(sql)
  const pages = new WrittenPages()

  const grouped = <I, A, B = A>(
    operation: BatchedOperation,
    keyOf: (input: I) => ChargeKey,
    execute: (inputs: ReadonlyArray<I>) => Effect.Effect<ReadonlyArray<A>, StoreFailure>,
    follow?: (first: I, later: I) => ((answer: A) => A) | undefined,
    onward?: (input: I, answer: A) => Effect.Effect<B, LedgerError>
  ) =>
    GroupCommit.make<I, A, StoreFailure, LedgerError, B>({
      operation,
      execute,
      keyOf,
      failure: (input, failure) => ledgerUnavailable(operation.replace("_", " "), keyOf(input))(failure),
      ...(follow === undefined ? {} : { follow }),
      ...(onward === undefined ? {} : { onward }),
      splits: isBadInput,
      maxSize: Math.min(options.batchMax ?? 512, eventPageMax),
      inFlight: options.inFlight ?? 1
    })
  const same = (yes: boolean) => yes ? <A>(answer: A) => answer : undefined

  const claimAny = yield* grouped<Batches.ClaimInput, ClaimAnswer>(
    "claim",
    (input) => input.chargeKey,
    Batches.claim(sql, leaseMs),
    (first, later) => sameTerms(first, later) ? afterClaim : undefined
  )
  const firstClaims = makeFirstClaims(sql, leaseMs, pages)
  const firsts = (claims: (inputs: ReadonlyArray<Batches.ClaimInput>) => Effect.Effect<ReadonlyArray<FirstAnswer>, StoreFailure>, others: (input: Batches.ClaimInput) => Effect.Effect<ClaimAnswer, LedgerError>) =>
    grouped<Batches.ClaimInput, FirstAnswer, ClaimAnswer>(
      "claim",
      (input) => input.chargeKey,
      (inputs) => Effect.tap(claims(inputs), (answers) => upkeep.claimed(answers.filter((answer) => typeof answer === "object").length)),
      (first, later) => sameTerms(first, later) ? (answer) => typeof answer === "object" ? afterClaim(answer) : answer : undefined,
      (input, answer) => typeof answer === "object" ? Exit.succeed(answer) : answer === elsewhere ? others(input) : claimAny(input)
    )
  const beginAny = yield* firsts(firstClaims.any, claimAny)
  const begin = yield* firsts(firstClaims.begin, beginAny)
  const sameAttach = (a: AttachInput, b: AttachInput) =>
    same(a.paymentIntentId === b.paymentIntentId && a.lease.epoch === b.lease.epoch && a.generation === b.generation && a.paymentMethod === b.paymentMethod)
  const attachAny = yield* grouped<AttachInput, AttachAnswer>("attach", (input) => input.lease.chargeKey, Batches.attach(sql), sameAttach)
  const attached: AttachAnswer = { _tag: "Attached" }
  const attach = yield* grouped<AttachInput, boolean, AttachAnswer>("attach", (input) => input.lease.chargeKey, Batches.attachFirst(sql), sameAttach, (input, moved) =>
    moved ? Exit.succeed(attached) : attachAny(input))
  const settleAny = yield* grouped<SettleInput, SettleAnswer>("settle", (input) => input.lease.chargeKey, Batches.settle(sql))
  const settlePaid = yield* grouped<Batches.PaidInput, boolean, SettleAnswer>("settle", (input) => input.lease.chargeKey, Batches.settlePaid(sql, pages), undefined, (input, moved) =>
    moved ? Exit.succeed({ _tag: "Settled", outcome: input.outcome }) : settleAny(input))
  const settle = (input: SettleInput) => Batches.isFirstPaid(input) ? settlePaid(input) : settleAny(input)
  const extend = yield* grouped<Lease, boolean>("extend", (lease) => lease.chargeKey, Batches.extend(sql, leaseMs), (a, b) => same(a.epoch === b.epoch))
  const handBack = yield* grouped<Batches.HandBackInput, boolean>("hand_back", (input) => input.lease.chargeKey, Batches.handBack(sql))
  const markReleased = yield* grouped<{ readonly chargeKey: ChargeKey; readonly attempt: number }, boolean>(
    "mark_released",
    (input) => input.chargeKey,
    Batches.markReleased(sql),
    (a, b) => same(a.attempt === b.attempt)
  )

  /** One statement of its own, decoded. */
  const query = <S extends Schema.Top & { readonly DecodingServices: never }, A>(
    operation: string,
    chargeKey: ChargeKey | null,
    statement: string,
    params: ReadonlyArray<unknown>,
    schema: S,
    map: (rows: ReadonlyArray<S["Type"]>) => Effect.Effect<A, StoreFailure>
  ): Effect.Effect<A, LedgerError> =>
    retryRolledBack(Effect.flatMap(sql.unsafe(statement, params), decodeRows(schema))).pipe(
      Effect.flatMap(map),
      Effect.mapError(ledgerUnavailable(operation, chargeKey))
    )

  return Ledger.of({
    store: sql,
    claim: (request, worker, extras) =>
      Effect.withFiber((fiber) => (request.revision === undefined ? begin : claimAny)(new Batches.ClaimInput(request, worker, fiber.getRef(Principal), extras))),
    attach,
    settle,
    extend,
    handBack: (lease, retryAfterMs, detail) => handBack({ lease, retryAfterMs, detail }),
    markReleased: (chargeKey, attempt) => Effect.asVoid(markReleased({ chargeKey, attempt })),
    renew: ({ generation, lease, paymentIntentId }) =>
      query(
        "renew",
        lease.chargeKey,
        Sql.renew,
        [text(lease.chargeKey), text(lease.worker), BigInt(lease.epoch), integer(generation), text(paymentIntentId)],
        Key,
        (rows) => Effect.succeed(rows.length === 1)
      ),
    quarantine: (lease, detail) =>
      query("quarantine", lease.chargeKey, Sql.quarantine, [text(lease.chargeKey), text(lease.worker), text(detail)], Key, () => Effect.void),
    takeExpired: (worker, limit) =>
      Effect.mapError(
        Effect.flatMap(takeExpired(sql, worker, limit, leaseMs), (rows) => Effect.forEach(rows, (row) => takenOf(row, worker))),
        ledgerUnavailable("take expired", null)
      ),
    takeWaiting: (chargeKey, worker) =>
      query("take waiting", chargeKey, takeWaiting, [text(chargeKey), text(worker), double(leaseMs)], TakenRow, ([row]) =>
        row === undefined ? Effect.succeed(undefined) : takenOf(row, worker)),
    adopt: ({ paymentIntentId, paymentMethod, request, worker }) => {
      const { chargeKey } = request
      const before = revisedIdentity(request)
      return query("adopt", chargeKey, Watch.adopt, [
        text(chargeKey), text(request.namespace), text(request.customerId), text(request.billingPeriod), text(request.item ?? null),
        bigint(request.amountMinor), text(request.currency), text(request.stripeCustomerId), text(request.paymentMethod ?? null),
        boolean(request.allowFuture === true), text(worker), text(paymentIntentId), text(paymentMethod), double(leaseMs), integer(request.revision ?? 0),
        text(before === undefined ? null : chargeKeyOf(before))
      ], TakenRow, ([row]) =>
        row === undefined ? Effect.succeed(undefined) : Effect.map(takenOf(row, worker), (charge) => ({ ...charge, resumed: true })))
    },
    newestEventMs: query("newest event", null, Watch.newestEvent, [], NewestRow, ([row]) => Effect.succeed(row?.at_ms)),
    namespaces: (billingPeriod) =>
      query("namespaces of a period", null, Watch.namespaces, [text(billingPeriod)], NamespaceRow, (rows) => Effect.succeed(rows.map(({ namespace }) => namespace))),
    page: (billingPeriod, afterKey, limit) =>
      query("page charges", null, Watch.page, [text(billingPeriod), text(afterKey), integer(limit)], RecordRow, (rows) => Effect.forEach(rows, recordOf)),
    releaseDue: (limit) =>
      query("release due", null, Reads.releaseDue, [integer(limit)], ReleaseRow, (rows) =>
        Effect.succeed(rows.map((row) => ({ chargeKey: row.charge_key, attempt: row.attempt })))),
    reopen: ({ actor, attempt, chargeKeys, from, paymentMethod, reason }) =>
      Effect.forEach(Arr.chunksOf(chargeKeys, eventPageMax), (keys) =>
        query("reopen", null, Sql.reopen, [texts(keys), texts(from), text(actor), text(reason), text(paymentMethod ?? null), integer(attempt ?? null)], MovedRow, ([row]) =>
          Effect.succeed(row?.moved ?? 0))).pipe(Effect.map((moved) => moved.reduce((sum, count) => sum + count, 0))),
    attemptsDue: (limit) => query("attempts due", null, Reads.attemptsDue, [integer(limit)], RecordRow, (rows) => Effect.forEach(rows, recordOf)),
    find: (chargeKey) =>
      query("find", chargeKey, Reads.find, [text(chargeKey)], RecordRow, ([row]) => row === undefined ? Effect.succeed(undefined) : recordOf(row)),
    events: (chargeKey) => query("events", chargeKey, Reads.events, [text(chargeKey)], EventRow, (rows) => Effect.succeed(rows.map(eventOf))),
    report: (billingPeriod) =>
      query("report", null, Reads.report, [text(billingPeriod ?? null)], TotalRow, (rows) => Effect.succeed(rows.map(totalOf)))
  })
})

/** The ledger's layers. */
export const PgLedger: {
  /** Leases last `PURSER_LEASE` (15 seconds). The tables are those of `Migrations`. */
  readonly layer: Layer.Layer<Ledger, Config.ConfigError, SqlClient.SqlClient>
  /** With options instead of the environment. */
  readonly layerWith: (options: PgLedgerOptions) => Layer.Layer<Ledger, never, SqlClient.SqlClient>
} = {
  layer: Layer.effect(
    Ledger,
    Effect.flatMap(leaseConfig, (lease) => make({ lease }))
  ),
  layerWith: (options) => Layer.effect(Ledger, make(options))
}
