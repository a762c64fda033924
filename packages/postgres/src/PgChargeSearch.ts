/** The search for charges on PostgreSQL (or PGlite), by the indexes of `0012_create_console`. */
import { ChargeKey, type ChargeLine, ChargeSearch } from "@purser/core"
import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { lineOf, LineRow } from "./internal/chargeLine.ts"
import * as Sql from "./internal/searchSql.ts"
import { asker } from "./internal/storeQuery.ts"

/** Rows that one page looks at, at the most: some hundred milliseconds where none of them is in memory. */
const budget = 5_000

const PlaceRow = Schema.Struct({ customer_id: Schema.String, billing_period: Schema.String, charge_key: ChargeKey })
const placeOf = ({ billingPeriod, chargeKey, customerId }: ChargeLine) => ({ billingPeriod, chargeKey, customerId })

const make = Effect.gen(function*() {
  const ask = asker(yield* SqlClient.SqlClient)
  return ChargeSearch.of({
    find: Effect.fn("ChargeSearch.find")(function*(query, after, limit) {
      const found = query.paymentIntentId === undefined ? Sql.find(query, after, limit, budget) : Sql.findObject(query.paymentIntentId, limit)
      const charges = (yield* ask("search charges", found.sql, found.params, LineRow)).map(lineOf)
      if (query.paymentIntentId !== undefined) return { charges, next: null, looked: charges.length }
      if (charges.length === limit) return { charges, next: placeOf(charges[limit - 1]!), looked: limit }
      if (Sql.isPlain(query)) return { charges, next: null, looked: charges.length }
      const last = Sql.place(query, after, budget)
      const [place] = yield* ask("search charges", last.sql, last.params, PlaceRow)
      return place === undefined
        ? { charges, next: null, looked: charges.length }
        : { charges, next: { customerId: place.customer_id, billingPeriod: place.billing_period, chargeKey: place.charge_key }, looked: budget }
    })
  })
})

/** The search's layer. */
export const PgChargeSearch: {
  /** Over the charges of `PgLedger`. */
  readonly layer: Layer.Layer<ChargeSearch, never, SqlClient.SqlClient>
} = { layer: Layer.effect(ChargeSearch, make) }
