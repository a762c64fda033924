/** A reconciliation's scratch book on PostgreSQL (or PGlite): an unlogged table, joined with the ledger where rows are missing. */
import { type AccountPayment, ReconcileBook } from "@purser/core"
import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { integer, text, texts } from "./internal/params.ts"
import { asker, sender } from "./internal/storeQuery.ts"
import * as Sql from "./internal/watchSql.ts"

const NullText = Schema.NullOr(Schema.String)
const Kept = Schema.fromJsonString(Schema.Struct({
  id: Schema.String,
  status: Schema.Literals(["draft", "unconfirmed", "declined", "requires_action", "processing", "succeeded", "canceled", "other"]),
  amountMinor: Schema.Int,
  amountReceivedMinor: Schema.Int,
  currency: Schema.String,
  stripeCustomerId: NullText,
  createdMs: Schema.Finite,
  chargeId: NullText,
  paymentMethod: NullText,
  identity: Schema.NullOr(Schema.Struct({
    chargeKey: Schema.String,
    customerId: NullText,
    billingPeriod: NullText,
    namespace: NullText,
    item: NullText,
    revision: Schema.NullOr(Schema.Int),
    generation: Schema.NullOr(Schema.Int)
  }))
}))
const ObjectRow = Schema.Struct({ object: Kept })
const ProbedRow = Schema.Struct({ id: Schema.String, object: Schema.NullOr(Kept) })
const encode = Schema.encodeSync(Kept)

const make = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const ask = asker(sql)
  const send = sender(sql)
  const objectsOf = (rows: ReadonlyArray<typeof ObjectRow.Type>): ReadonlyArray<AccountPayment> => rows.map(({ object }) => object)
  return ReconcileBook.of({
    begin: (bookId) => send("begin reconciliation", Sql.beginBook, [text(bookId)]),
    add: (bookId, objects) => {
      const ours = objects.filter(({ identity }) => identity !== null)
      return ours.length === 0 ? Effect.void : send("book objects", Sql.addObjects, [
        text(bookId), texts(ours.map(({ id }) => id)), texts(ours.map(({ identity }) => identity!.chargeKey)), texts(ours.map((object) => encode(object)))
      ])
    },
    objects: (bookId, chargeKeys) => Effect.map(ask("read booked objects", Sql.booked, [text(bookId), texts(chargeKeys)], ObjectRow), objectsOf),
    withoutRow: (bookId, afterId, limit) =>
      Effect.map(ask("read objects without rows", Sql.withoutRow, [text(bookId), text(afterId), integer(limit)], ProbedRow), (rows) => ({
        objects: rows.map(({ object }) => object).filter((object) => object !== null),
        next: rows.length === limit ? rows.at(-1)?.id : undefined
      })),
    discard: (bookId) => send("end reconciliation", Sql.discardBook, [text(bookId)])
  })
})

/** The book's layer. */
export const PgReconcileBook: { readonly layer: Layer.Layer<ReconcileBook, never, SqlClient.SqlClient> } = {
  layer: Layer.effect(ReconcileBook, make)
}
