import { AmountMinor, BillingPeriod, ChargeRequest, Currency, defaultNamespace } from "@purser/core"
import { RunDefinition, RunDefinitions } from "@purser/engine"
import { Effect, Layer, Schedule, Schema, Stream } from "effect"

const CustomerUsage = Schema.Struct({ customer: Schema.String, requests: Schema.Int, period: BillingPeriod })
const Rated = Schema.Struct({ ...CustomerUsage.fields, netMinor: Schema.Int })
const Taxed = Schema.Struct({ ...Rated.fields, totalMinor: AmountMinor })
const usageOf = (period: BillingPeriod) => Stream.make({ customer: "cust_123", requests: 1200, period })
const rateAll = (items: ReadonlyArray<typeof CustomerUsage.Type>, _idempotencyKey: string) => Effect.succeed(items.map((item) => ({ ...item, netMinor: item.requests * 2 })))
const taxAll = (items: ReadonlyArray<typeof Rated.Type>) =>
  Effect.succeed(items.map((item) => ({ ...item, totalMinor: Schema.decodeSync(AmountMinor)(Math.floor((item.netMinor * 119 + 50) / 100)) })))
const requestOf = ({ customer, period, totalMinor }: typeof Taxed.Type) =>
  new ChargeRequest({
    namespace: defaultNamespace, customerId: customer, billingPeriod: period, amountMinor: totalMinor, currency: Schema.decodeSync(Currency)("usd"), stripeCustomerId: "cus_123"
  })
const sendReceipts = (rows: ReadonlyArray<unknown>) => Effect.log(`${rows.length} receipts`)
const tellOwnSystem = (rows: ReadonlyArray<unknown>, idempotencyKey: string) => Effect.log(`${rows.length} rows, ${idempotencyKey}`)
const tellPeople = (_report: unknown) => Effect.log("it is over")

// #region
const monthly = RunDefinition.items("metered", {
  params: Schema.Struct({ period: BillingPeriod }),
  item: CustomerUsage,                                  // everything that one charge is made of
  items: ({ period }) => usageOf(period)                // any Stream
})
  .stage("rate", { output: Rated, run: (items, { idempotencyKey }) => rateAll(items, idempotencyKey) })
  .stage("tax", { output: Taxed, timeout: "10 seconds", retry: Schedule.recurs(3), run: taxAll })
  .charge((taxed) => requestOf(taxed))                  // the charge itself is the engine's
  .after("receipt", { run: (rows) => sendReceipts(rows) })
  .after("own webhook", { run: (rows, { idempotencyKey }) => tellOwnSystem(rows, idempotencyKey) })
  .ended({ run: (report) => tellPeople(report) })

const Definitions = RunDefinitions.layer(monthly)       // needs what the stages need
// #endregion

console.log(monthly.name, Layer.isLayer(Definitions))
