/**
 * The proxy's hot path on its store: whether a call may be forwarded, and what came of it.
 *
 * Deciding and taking room is one statement, in which many calls share a batch and every process of one store waits for
 * the others. Nothing is cached: what `revoke`, `raise` and `kill` write holds for the next decision.
 */
import type { Redacted } from "effect"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import * as GroupCommit from "@purser/postgres/GroupCommit"
import type { MoneyEffect } from "./Evidence.ts"
import { isBadInput, type QueryFailure, rows, unavailable } from "./internal/vaultQuery.ts"
import type { RouteKind } from "./RoutePolicy.ts"
import { hashVaultKey, withoutVaultKeys } from "./VaultKey.ts"
import type { VaultStoreError } from "./VaultStoreError.ts"

/** A call that wants to be forwarded. */
export interface Wish {
  readonly vaultKey: Redacted.Redacted
  readonly kind: RouteKind
  readonly method: string
  readonly path: string
  readonly key: string | null
  readonly fingerprint: string | null
  readonly amountMinor: number | null
  readonly currency: string | null
  readonly customer: string | null
  /** The connected account that is charged; "" for the key's own. */
  readonly account: string
  readonly intentId: string | null
  /** Kept until the outcome is known where a vault guards against duplicates. Base64. */
  readonly body: string | null
  /** True when amount, currency and customer of an intent were fetched. */
  readonly fetched: boolean
  /** A code that refuses the call when the key itself is good: a form that is not read. */
  readonly problem: string | null
}

const Verdict = Schema.Struct({
  ord: Schema.Int,
  /**
   * `permitted`: forward. `replayed`: forward, counted before. `duplicate`: answer with `answer`. `resumed`: forward the
   * first call of this customer again, to learn its outcome. `look`: the first call's object is not paid; read it at
   * Stripe, record it, and answer with it. `unknown_intent`: fetch it and ask again. `refused`: `code`.
   */
  verdict: Schema.Literals(["permitted", "replayed", "duplicate", "resumed", "look", "unknown_intent", "refused"]),
  code: Schema.NullOr(Schema.String),
  vault_id: Schema.NullOr(Schema.String),
  seq: Schema.NullOr(Schema.BigInt),
  hold_id: Schema.NullOr(Schema.BigInt),
  round: Schema.Int,
  cap_minor: Schema.NullOr(Schema.BigInt),
  used_minor: Schema.NullOr(Schema.BigInt),
  period: Schema.NullOr(Schema.String),
  vault_currency: Schema.NullOr(Schema.String),
  first_key: Schema.NullOr(Schema.String),
  first_route: Schema.NullOr(Schema.String),
  request_body: Schema.NullOr(Schema.String),
  object_id: Schema.NullOr(Schema.String),
  object_kind: Schema.NullOr(Schema.String),
  answer: Schema.NullOr(Schema.String)
})

/** The decision. */
export type Verdict = typeof Verdict.Type

/** What came of a forwarded call. */
export interface Outcome {
  readonly verdict: Verdict
  readonly kind: RouteKind
  readonly key: string | null
  readonly effect: MoneyEffect
  /** The charge or intent that the answer names. */
  readonly objectId: string | null
  readonly intentId: string | null
  readonly amountMinor: number | null
  readonly status: number | null
  readonly requestId: string | null
  readonly detail: string | null
  /** The answer as it will be given again to duplicates. */
  readonly answer: string | null
}

const decideSql = `select * from purser.decide($1::text::jsonb)`
const recordSql = `select purser.record($1::text::jsonb)`

const make = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  // Inputs of a batch are decided one after the other by the database, so that none must wait for the next batch.
  let count = 0
  const unique = () => String(count = (count + 1) % Number.MAX_SAFE_INTEGER)
  const limits = { keyOf: unique, splits: isBadInput, maxSize: 128, inFlight: 1 }
  const number = (value: bigint | null) => value === null ? null : Number(value)

  const decide = yield* GroupCommit.make<Wish, Verdict, QueryFailure>({
    ...limits,
    execute: (wishes) =>
      Effect.map(
        rows(sql, Verdict, decideSql, [
          JSON.stringify(wishes.map(({ vaultKey, ...wish }, ord) => ({ ...wish, path: withoutVaultKeys(wish.path), key: withoutVaultKeys(wish.key), ord, keyHash: hashVaultKey(vaultKey) })))
        ]),
        (found) => found.toSorted((a, b) => a.ord - b.ord)
      )
  })
  const record = yield* GroupCommit.make<Outcome, void, QueryFailure>({
    ...limits,
    execute: (outcomes) =>
      Effect.as(
        rows(sql, Schema.Unknown, recordSql, [
          JSON.stringify(outcomes.map(({ verdict, ...outcome }, ord) => ({
            ...outcome, key: withoutVaultKeys(outcome.key), ord, seq: number(verdict.seq), vaultId: verdict.vault_id, round: verdict.round, holdId: number(verdict.hold_id)
          })))
        ]),
        outcomes.map(() => undefined)
      )
  })
  return VaultStore.of({
    decide: (wish) => Effect.mapError(decide(wish), unavailable("decide")),
    record: (outcome) => Effect.mapError(record(outcome), unavailable("record"))
  })
})

/** The decisions. Methods need nothing and fail when the store is away. */
export class VaultStore extends Context.Service<VaultStore, {
  /** Decides about a call, takes room for it and writes the decision down, in one act. */
  readonly decide: (wish: Wish) => Effect.Effect<Verdict, VaultStoreError>
  /** Writes down what came of it, settles or gives back its room by the evidence. */
  readonly record: (outcome: Outcome) => Effect.Effect<void, VaultStoreError>
}>()("@purser/spend-cap-proxy/VaultStore") {
  /** On the tables of the proxy's migrations. */
  static readonly layer: Layer.Layer<VaultStore, never, SqlClient.SqlClient> = Layer.effect(VaultStore, make)
}
