/**
 * The proxy's hot path on its store: whether a call may be forwarded, and what came of it.
 *
 * Deciding and taking room is one statement, in which many calls share a batch, what came of earlier ones goes first, and every process of one
 * store waits for the others. Nothing is cached: what `revoke`, `raise` and `kill` write holds for the next decision.
 */
import type { Redacted } from "effect"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import * as GroupCommit from "@purser/postgres/GroupCommit"
import type { MoneyEffect } from "./Evidence.ts"
import { isBadInput, type QueryFailure, rowsOf, unavailable } from "./internal/vaultQuery.ts"
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
  /** The billing period that the call names; null where it names none. */
  readonly period: string | null
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
  /** True when Stripe said that it repeats an earlier answer. */
  readonly replayed: boolean
  readonly detail: string | null
  /** The answer as it will be given again to duplicates. */
  readonly answer: string | null
}

const decideSql = `select * from purser.decide($1::text::jsonb, $2::text::jsonb)`
// A message in the log that means nothing: its commit is durable, and with it all that was before.
const sealSql = `select pg_logical_emit_message(true, 'purser', '') is not null as sealed`
/** How long an outcome may be in memory alone where no decision follows it. */
const sealAfter = "200 millis"

/** What waits for the store. */
type Entry = { readonly wish: Wish } | { readonly outcome: Outcome }

const number = (value: bigint | null) => value === null ? null : Number(value)

const wishJson = ({ vaultKey, ...wish }: Wish, ord: number) => ({
  ...wish, path: withoutVaultKeys(wish.path), key: withoutVaultKeys(wish.key), ord, keyHash: hashVaultKey(vaultKey)
})

const outcomeJson = ({ verdict, ...outcome }: Outcome, ord: number) => ({
  ...outcome, key: withoutVaultKeys(outcome.key), ord, seq: number(verdict.seq), vaultId: verdict.vault_id, round: verdict.round, holdId: number(verdict.hold_id)
})

const make = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const scope = yield* Effect.scope
  const verdicts = rowsOf(sql, Verdict)
  let loose = false
  let sealing = false
  /** The database need not be asked to keep outcomes: a decision's commit keeps what was before it, and so does this, when none comes. */
  const seal: Effect.Effect<void> = Effect.sleep(sealAfter).pipe(
    Effect.andThen(Effect.suspend(() => {
      sealing = false
      return loose ? Effect.ignore(sql.unsafe(sealSql)) : Effect.void
    }))
  )

  // One queue for both, so that an outcome that a client may have heard of is written before what it asks next is decided.
  let count = 0
  const ask = yield* GroupCommit.make<Entry, Verdict | undefined, QueryFailure>({
    // Inputs of a batch are taken one after the other by the database, so that none must wait for the next batch.
    keyOf: () => String(count = (count + 1) % Number.MAX_SAFE_INTEGER),
    splits: isBadInput,
    maxSize: 256,
    inFlight: 1,
    execute: (entries) => {
      const wishes: Array<ReturnType<typeof wishJson>> = []
      const outcomes: Array<ReturnType<typeof outcomeJson>> = []
      entries.forEach((entry, ord) => {
        if ("wish" in entry) wishes.push(wishJson(entry.wish, ord))
        else outcomes.push(outcomeJson(entry.outcome, ord))
      })
      return Effect.flatMap(verdicts(decideSql, [JSON.stringify(wishes), JSON.stringify(outcomes)]), (found) => {
        const answers = Array.from<Verdict | undefined>({ length: entries.length })
        for (const verdict of found) answers[verdict.ord] = verdict
        loose = wishes.length === 0
        if (!loose || sealing) return Effect.succeed(answers)
        sealing = true
        return Effect.as(Effect.forkIn(seal, scope), answers)
      })
    }
  })
  return VaultStore.of({
    decide: (wish) => Effect.flatMap(Effect.mapError(ask({ wish }), unavailable("decide")), (verdict) =>
      verdict === undefined ? Effect.die(new Error("Bug: a call without a decision")) : Effect.succeed(verdict)),
    record: (outcome) => Effect.asVoid(Effect.mapError(ask({ outcome }), unavailable("record")))
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
