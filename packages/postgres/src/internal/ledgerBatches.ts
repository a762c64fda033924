/** What a batch of each hot operation sends and how its rows become answers. A row that changed under it is asked again. */
import {
  type AttachAnswer, type AttachInput, ChargeKey, type ChargeOutcome, type ChargeRequest, chargeTerms, type ClaimAnswer, type ClaimExtras, type Lease,
  type SettleAnswer, type SettleInput, type Succeeded
} from "@purser/core"
import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { claimedFields, claimedOf, decodeRows, outcomeColumns, outcomeFields, outcomeOf, StateColumn } from "./chargeRow.ts"
import { Contended, retryRolledBack, type StoreFailure } from "./failures.ts"
import * as Sql from "./ledgerWrites.ts"
import { bigint, bigints, double, doubles, integers, nullableDoubles, text, texts } from "./params.ts"
import { requestColumns } from "./requestColumns.ts"
import type { WrittenPages } from "./WrittenPages.ts"

/** One claim of a worker. */
export class ClaimInput {
  readonly chargeKey: ChargeKey
  readonly request: ChargeRequest
  readonly worker: string
  readonly principal: string | null
  readonly extras: ClaimExtras | undefined

  constructor(request: ChargeRequest, worker: string, principal: string | null, extras: ClaimExtras | undefined) {
    this.chargeKey = request.chargeKey
    this.request = request
    this.worker = worker
    this.principal = principal
    this.extras = extras
  }
}

/** One charge to be handed back. */
export interface HandBackInput {
  readonly lease: Lease
  readonly retryAfterMs: number
  readonly detail: string
}

const rounds = 16

/** Sends a batch, and again what lost a race, until every input has its answer. */
const untilAnswered = <I, A>(
  operation: string,
  keyOf: (input: I) => string,
  send: (inputs: ReadonlyArray<I>) => Effect.Effect<ReadonlyMap<string, A | undefined>, StoreFailure>
) =>
  Effect.fnUntraced(function*(inputs: ReadonlyArray<I>): Effect.fn.Return<ReadonlyArray<A>, StoreFailure> {
    const answers = new Map<string, A>()
    let left = inputs
    for (let round = 0; round < rounds && left.length > 0; round++) {
      for (const [key, answer] of yield* retryRolledBack(send(left))) if (answer !== undefined) answers.set(key, answer)
      left = left.filter((input) => !answers.has(keyOf(input)))
    }
    if (left.length > 0) return yield* new Contended({ operation })
    return inputs.map((input) => answers.get(keyOf(input))!)
  })

const ClaimedRow = Schema.Struct({ charge_key: ChargeKey, verdict: Schema.Literal("claimed"), ...claimedFields })
const FoundRow = Schema.Struct({
  charge_key: ChargeKey,
  verdict: Schema.Literals(["again", "conflict", "quarantined", "settled", "in_progress", "unopened"]),
  quarantine: Schema.NullOr(Schema.String),
  kept_amount: Schema.NullOr(Schema.BigInt),
  kept_currency: Schema.NullOr(Schema.String),
  kept_customer: Schema.NullOr(Schema.String),
  kept_method: Schema.NullOr(Schema.String),
  state: Schema.NullOr(StateColumn),
  ...outcomeFields,
  left_ms: Schema.NullOr(Schema.Finite)
})
const decodeClaims = decodeRows(Schema.Union([ClaimedRow, FoundRow]))

const claimAnswer = (row: typeof ClaimedRow.Type | typeof FoundRow.Type, input: ClaimInput): ClaimAnswer | undefined => {
  switch (row.verdict) {
    case "claimed":
      return { _tag: "Claimed", charge: claimedOf(row, input.request, row.charge_key, input.worker) }
    case "conflict":
      return {
        _tag: "Conflict",
        expected: {
          amountMinor: Number(row.kept_amount),
          currency: row.kept_currency ?? "",
          stripeCustomerId: row.kept_customer ?? "",
          paymentMethod: row.kept_method
        },
        actual: chargeTerms(input.request)
      }
    case "quarantined":
      return { _tag: "Quarantined", detail: row.quarantine ?? "" }
    case "unopened":
      return { _tag: "Unopened" }
    case "in_progress":
      return { _tag: "InProgress", leaseLeftMs: row.left_ms ?? 0 }
    case "settled": {
      const outcome = outcomeOf(row.charge_key, row.state, row)
      return outcome === null ? undefined : { _tag: "AlreadySettled", outcome }
    }
    case "again":
      return undefined
  }
}

/** What `begin` and `claim` are given first. */
export const claimColumns = (inputs: ReadonlyArray<ClaimInput>, leaseMs: number) => [
  texts(inputs.map((input) => input.chargeKey)),
  ...requestColumns(inputs.map((input) => input.request)),
  texts(inputs.map((input) => input.worker)),
  double(leaseMs),
  texts(inputs.map((input) => input.principal))
]

/** Keys of a batch; null is all of them. */
export const Keys = Schema.NullOr(Schema.Array(Schema.String))
/** Which of a batch's keys a statement answered; null is all of them. */
export const isAmong = (answered: ReadonlyArray<string> | null, keys: ReadonlyArray<string>): ReadonlyArray<boolean> => {
  if (answered === null) return keys.map(() => true)
  const among = new Set(answered)
  return keys.map((key) => among.has(key))
}

/** In the order of their keys, in which all statements write rows. They are hexadecimal: the database has them in the same order. */
export const inOrder = <I>(inputs: ReadonlyArray<I>, keyOf: (input: I) => string): ReadonlyArray<I> =>
  inputs.length === 1 ? inputs : inputs.toSorted((a, b) => keyOf(a) < keyOf(b) ? -1 : 1)

/** Claims of distinct keys. */
export const claim = (sql: SqlClient.SqlClient, leaseMs: number) =>
  untilAnswered("claim", (input: ClaimInput) => input.chargeKey, (inputs) => {
    const byKey = new Map(inputs.map((input) => [input.chargeKey, input]))
    return sql.unsafe(Sql.claim, [...claimColumns(inputs, leaseMs), integers(inputs.map(({ request }) => request.revision ?? 0))]).pipe(
      Effect.flatMap(decodeClaims),
      Effect.map((rows) => new Map(rows.map((row) => [row.charge_key, claimAnswer(row, byKey.get(row.charge_key)!)])))
    )
  })

const decodeAttached = decodeRows(Schema.Struct({
  charge_key: ChargeKey,
  kept_id: Schema.NullOr(Schema.String),
  verdict: Schema.Literals(["attached", "lost", "again"])
}))

const decodeMoved = decodeRows(Schema.Struct({ moved: Keys }))
const hasMoved = (rows: unknown, keys: ReadonlyArray<string>) =>
  Effect.map(decodeMoved(rows), ([row]) => isAmong(row === undefined ? [] : row.moved, keys))

const attachColumns = (inputs: ReadonlyArray<AttachInput>) => [
  texts(inputs.map((input) => input.lease.chargeKey)),
  texts(inputs.map((input) => input.lease.worker)),
  bigints(inputs.map((input) => input.lease.epoch)),
  integers(inputs.map((input) => input.generation)),
  texts(inputs.map((input) => input.paymentIntentId)),
  texts(inputs.map((input) => input.paymentMethod))
]

/** Attaches of distinct keys; true where a charge that had no object has this one now. */
export const attachFirst = (sql: SqlClient.SqlClient) => (inputs: ReadonlyArray<AttachInput>): Effect.Effect<ReadonlyArray<boolean>, StoreFailure> =>
  retryRolledBack(Effect.flatMap(sql.unsafe(Sql.attachFirst, attachColumns(inputs)), (rows) => hasMoved(rows, inputs.map(({ lease }) => lease.chargeKey))))

/** Attaches of distinct keys. */
export const attach = (sql: SqlClient.SqlClient) =>
  untilAnswered("attach", (input: AttachInput) => input.lease.chargeKey, (inputs) =>
    sql.unsafe(Sql.attach, attachColumns(inputs)).pipe(
      Effect.flatMap(decodeAttached),
      Effect.map((rows) =>
        new Map(rows.map((row): [string, AttachAnswer | undefined] => [
          row.charge_key,
          row.verdict === "attached" ? { _tag: "Attached" } : row.verdict === "lost" ? { _tag: "Lost", winnerId: row.kept_id } : undefined
        ]))
      )
    ))

const SettledRow = Schema.Struct({
  charge_key: ChargeKey,
  verdict: Schema.Literals(["polls", "recorded", "lost", "again"]),
  state: Schema.NullOr(StateColumn),
  ...outcomeFields
})
/** Nearly every row: of what it says no more is read. */
const MovedRow = Schema.Struct({ charge_key: ChargeKey, verdict: Schema.Literal("moves"), ours: Schema.Boolean })
const decodeSettled = decodeRows(Schema.Union([MovedRow, SettledRow]))

const settleAnswer = (row: typeof MovedRow.Type | typeof SettledRow.Type, input: SettleInput): SettleAnswer | undefined => {
  const recorded = (outcome: ChargeOutcome | null): SettleAnswer | undefined => outcome === null ? undefined : { _tag: "Recorded", outcome }
  switch (row.verdict) {
    case "moves":
      return row.ours ? { _tag: "Settled", outcome: input.outcome } : { _tag: "Settled", outcome: input.outcome, late: true }
    case "polls":
    case "recorded":
      return recorded(outcomeOf(row.charge_key, row.state, row))
    case "lost":
      return { _tag: "LeaseLost" }
    case "again":
      return undefined
  }
}

/** A payment to be recorded by who claimed the charge first, with whose claim or after which room under the cap was taken. Any other one may hold none. */
export type PaidInput = SettleInput & { readonly outcome: Succeeded }
export const isFirstPaid = (input: SettleInput): input is PaidInput => input.outcome._tag === "Succeeded" && input.lease.epoch === 1 && input.attempt === 1

const settleOne = (sql: SqlClient.SqlClient, { lease, outcome }: PaidInput) =>
  sql.unsafe(Sql.settleOne, [text(lease.chargeKey), text(lease.worker), text(outcome.paymentIntentId), text(outcome.chargeId), bigint(outcome.amountReceivedMinor)])

const settleAlike = (sql: SqlClient.SqlClient, inputs: ReadonlyArray<PaidInput>, worker: string) => {
  const sent = inOrder(inputs, ({ lease }) => lease.chargeKey)
  return sql.unsafe(Sql.settlePaid, [
    texts(sent.map(({ lease }) => lease.chargeKey)),
    text(worker),
    texts(sent.map(({ outcome }) => outcome.paymentIntentId)),
    texts(sent.map(({ outcome }) => outcome.chargeId)),
    bigints(sent.map(({ outcome }) => outcome.amountReceivedMinor))
  ])
}

/** Payments of distinct keys; true where the holder recorded the payment of the attached object. Those of several workers are left to `settle`. */
export const settlePaid = (sql: SqlClient.SqlClient, pages: WrittenPages) => (inputs: ReadonlyArray<PaidInput>): Effect.Effect<ReadonlyArray<boolean>, StoreFailure> => {
  const [first] = inputs as readonly [PaidInput]
  const { worker } = first.lease
  if (inputs.some(({ lease }) => lease.worker !== worker)) return Effect.succeed(inputs.map(() => false))
  return retryRolledBack(Effect.flatMap(
    inputs.length === 1 ? settleOne(sql, first) : settleAlike(sql, inputs, worker),
    (rows) => hasMoved(rows, inputs.map(({ lease }) => lease.chargeKey))
  )).pipe(Effect.map((moved) => {
    for (const [index, { lease }] of inputs.entries()) if (moved[index]) pages.settled(lease.chargeKey)
    return moved
  }))
}

/** Settlements of distinct keys. */
export const settle = (sql: SqlClient.SqlClient) =>
  untilAnswered("settle", (input: SettleInput) => input.lease.chargeKey, (inputs) => {
    const columns = inputs.map((input) => outcomeColumns(input.outcome))
    const byKey = new Map<string, SettleInput>(inputs.map((input) => [input.lease.chargeKey, input]))
    return sql.unsafe(Sql.settle, [
      texts(inputs.map((input) => input.lease.chargeKey)),
      texts(inputs.map((input) => input.lease.worker)),
      bigints(inputs.map((input) => input.lease.epoch)),
      integers(inputs.map((input) => input.attempt)),
      texts(inputs.map((input) => input.paymentIntentId)),
      texts(columns.map((column) => column.state)),
      texts(columns.map((column) => column.intent)),
      texts(columns.map((column) => column.charge)),
      bigints(columns.map((column) => column.received)),
      texts(columns.map((column) => column.code)),
      texts(columns.map((column) => column.declineCode)),
      texts(columns.map((column) => column.detail)),
      doubles(inputs.map((input) => input.pollAfterMs ?? 0)),
      texts(columns.map((column) => column.adviceCode)),
      texts(columns.map((column) => column.declinedCharge)),
      nullableDoubles(inputs.map((input) => input.outcome._tag === "Declined" ? input.nextAttemptAfterMs ?? null : null))
    ]).pipe(
      Effect.flatMap(decodeSettled),
      Effect.map((rows) => new Map(rows.map((row) => [row.charge_key, settleAnswer(row, byKey.get(row.charge_key)!)])))
    )
  })

const decodeKeys = decodeRows(Schema.Struct({ charge_key: ChargeKey }))
const touched = (rows: unknown, keys: ReadonlyArray<string>) =>
  Effect.map(decodeKeys(rows), (found) => {
    const set = new Set<string>(found.map((row) => row.charge_key))
    return keys.map((key) => set.has(key))
  })

/** Leases of distinct keys; true where they last their full time again. */
export const extend = (sql: SqlClient.SqlClient, leaseMs: number) => (leases: ReadonlyArray<Lease>): Effect.Effect<ReadonlyArray<boolean>, StoreFailure> => {
  const keys = leases.map((lease) => lease.chargeKey)
  return retryRolledBack(Effect.flatMap(
    sql.unsafe(Sql.extend, [texts(keys), bigints(leases.map((lease) => lease.epoch)), double(leaseMs)]),
    (rows) => touched(rows, keys)
  ))
}

/** Charges given back; true where the lease was still held. */
export const handBack = (sql: SqlClient.SqlClient) => (inputs: ReadonlyArray<HandBackInput>): Effect.Effect<ReadonlyArray<boolean>, StoreFailure> => {
  const keys = inputs.map((input) => input.lease.chargeKey)
  return retryRolledBack(Effect.flatMap(
    sql.unsafe(Sql.handBack, [
      texts(keys),
      texts(inputs.map((input) => input.lease.worker)),
      bigints(inputs.map((input) => input.lease.epoch)),
      doubles(inputs.map((input) => input.retryAfterMs)),
      texts(inputs.map((input) => input.detail))
    ]),
    (rows) => touched(rows, keys)
  ))
}

/** Attempts whose room was given back. */
export const markReleased =
  (sql: SqlClient.SqlClient) =>
  (inputs: ReadonlyArray<{ readonly chargeKey: ChargeKey; readonly attempt: number }>): Effect.Effect<ReadonlyArray<boolean>, StoreFailure> => {
    const keys = inputs.map((input) => input.chargeKey)
    return retryRolledBack(Effect.flatMap(
      sql.unsafe(Sql.markReleased, [texts(keys), integers(inputs.map((input) => input.attempt))]),
      (rows) => touched(rows, keys)
    ))
  }
