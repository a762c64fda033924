/**
 * Runs whose rows are a query's: one charge for each row, by the names of its columns. It asks the ledger's own database, or the
 * one of `PURSER_SOURCE_DATABASE_URL`, in a transaction that may read and nothing else.
 */
import { AmountMinor, ChargeRequest, Currency, defaultNamespace, Money, OpaqueId, parsePeriod, type RunRow } from "@purser/core"
import { RunDefinition } from "@purser/engine"
import { Database, ReadOnlyQuery } from "@purser/postgres"
import { Config, type Context, Effect, Layer, Option, Schema, Stream } from "effect"
import type { SqlClient } from "effect/sql"

/** What the definition is told. `$1` in the text is the local time of the schedule that started the run, as a timestamp. */
export const QueryParams = Schema.Struct({ sql: Schema.NonEmptyString, at: Schema.optionalKey(Schema.String) })

const Text = Schema.Union([Schema.String, Schema.Finite, Schema.BigInt])
const optional = Schema.optionalKey(Schema.NullOr(Text))
const Columns = Schema.Struct({
  customer_id: Text,
  billing_period: Text,
  currency: Text,
  stripe_customer_id: Text,
  amount: optional,
  amount_minor: optional,
  payment_method: optional,
  item: optional,
  namespace: optional
})

/** A row of the query is no charge. */
export class BadQueryRow extends Schema.TaggedError<BadQueryRow>("@purser/purser/QueryRun/BadQueryRow")("BadQueryRow", {
  row: Schema.Int,
  detail: Schema.String
}) {
  override get message() {
    return `row ${this.row} of the query: ${this.detail}`
  }
  get isRetryable() {
    return false
  }
}

const decodeColumns = Schema.decodeUnknownEffect(Columns)
const decodeCurrency = Schema.decodeUnknownEffect(Currency)
const decodeAmount = Schema.decodeUnknownEffect(AmountMinor)
const decodeId = Schema.decodeUnknownEffect(OpaqueId)
const chunkSize = 1000

const requestOf = Effect.fnUntraced(function*(columns: unknown) {
  const { amount, amount_minor, billing_period, currency: currencyText, customer_id, item, namespace, payment_method, stripe_customer_id } = yield* decodeColumns(columns)
  const currency = yield* decodeCurrency(String(currencyText).toLowerCase())
  const period = yield* Effect.fromResult(parsePeriod(String(billing_period)))
  const given = (value: string | number | bigint | null | undefined) => value === undefined || value === null ? undefined : String(value)
  const decimal = given(amount)
  const amountMinor = decimal === undefined
    ? yield* decodeAmount(Number(amount_minor))
    : (yield* Effect.fromResult(Money.fromDecimal(decimal, currency))).amountMinor
  const method = given(payment_method)
  const itemId = given(item)
  return new ChargeRequest({
    namespace: given(namespace) ?? defaultNamespace,
    customerId: yield* decodeId(String(customer_id)),
    billingPeriod: period,
    amountMinor: yield* decodeAmount(Number(amountMinor)),
    currency,
    stripeCustomerId: yield* decodeId(String(stripe_customer_id)),
    ...(itemId === undefined ? {} : { item: yield* decodeId(itemId) }),
    ...(method === undefined ? {} : { paymentMethod: yield* decodeId(method) })
  })
})

const source = Effect.gen(function*() {
  const url = yield* Config.option(Config.Redacted("PURSER_SOURCE_DATABASE_URL"))
  if (Option.isNone(url)) return yield* Effect.context<Database | SqlClient.SqlClient>()
  return (yield* Layer.build(Database.layerUrl(url.value, { maxConnections: 1 }))) satisfies Context.Context<Database | SqlClient.SqlClient>
})

/** The definition `query`. */
export const QueryRun: { readonly definition: RunDefinition<Database | SqlClient.SqlClient> } = {
  definition: RunDefinition.rows("query", {
    params: QueryParams,
    rows: ({ at, sql: text }) =>
      Stream.unwrap(Effect.map(source, (database) => {
        let row = 0
        return ReadOnlyQuery.rows(text, text.includes("$1") ? [at ?? null] : []).pipe(
          Stream.provideContext(database),
          Stream.mapEffect((columns) => {
            const line = ++row
            return requestOf(columns).pipe(
              Effect.map((request): RunRow => ({ line, chargeKey: request.chargeKey, request })),
              Effect.mapError((error) => new BadQueryRow({ row: line, detail: error.message }))
            )
          }),
          Stream.grouped(chunkSize)
        )
      }))
  })
}
