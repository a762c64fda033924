/**
 * Usage events, metered into invoices and billed: rate → discount → tax → charge → receipt. Each stage is a step of a durable
 * run, with its own policy: killed at any place and started again, the program goes on, and nobody is charged twice.
 *
 *     node examples/metering.ts [EVENTS] [PERIOD]
 */
import { NodeRuntime } from "@effect/platform-node"
import { AmountMinor, ChargeRequest, Currency, defaultNamespace, parsePeriod } from "@purser/core"
import { RunDefinition, RunDefinitions, Runs } from "@purser/engine"
import { Purser, PurserEngine } from "@purser/purser"
import { Effect, Layer, Option, Result, Schedule, Schema, Stream } from "effect"
import { createReadStream } from "node:fs"
import { mkdir, writeFile } from "node:fs/promises"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"

const Meter = Schema.Literals(["requests", "storage_gb_days"])
const Usage = Schema.Struct({ id: Schema.String, customer: Schema.String, meter: Meter, quantity: Schema.Int, at: Schema.String })
const Metered = Schema.Struct({ customer: Schema.String, requests: Schema.Int, storageGbDays: Schema.Int })
const Invoice = Schema.Struct({ customer: Schema.String, subtotalMinor: Schema.Int, discountMinor: Schema.Int, taxMinor: Schema.Int })

/** What your own database knows of your customers. */
const accounts: Record<string, { readonly stripe: string; readonly discountPercent: number; readonly taxPercent: number }> = {
  acme: { stripe: "cus_acme", discountPercent: 10, taxPercent: 19 },
  birch: { stripe: "cus_birch", discountPercent: 0, taxPercent: 20 },
  cedar: { stripe: "cus_cedar", discountPercent: 25, taxPercent: 0 },
  dune: { stripe: "cus_dune", discountPercent: 0, taxPercent: 19 }
}
const accountOf = (customer: string) =>
  Option.match(Option.fromNullishOr(accounts[customer]), {
    onNone: () => Effect.fail({ message: `there is no account "${customer}"` }),
    onSome: Effect.succeed
  })

/** Half up, on integers: no amount is ever a float. */
const percentOf = (minor: number, percent: number) => Math.floor((minor * percent + 50) / 100)
const inThousands = (requests: number) => Math.ceil(Math.max(0, requests - 10_000) / 1000)

const decodeUsage = Schema.decodeUnknownEffect(Schema.fromJsonString(Usage))

/** One item for each customer. An event that was sent twice has the same id, and counts once. */
const metered = (file: string, month: string) =>
  Stream.fromAsyncIterable(createInterface({ input: createReadStream(file) }), (cause) => ({ message: String(cause) })).pipe(
    Stream.mapEffect((line) => decodeUsage(line)),
    Stream.filter(({ at }) => at.startsWith(month)),
    Stream.runFold(() => new Map<string, typeof Usage.Type>(), (events, event) => events.set(event.id, event)),
    Effect.map((events) => {
      const customers = new Map<string, typeof Metered.Type>()
      for (const { customer, meter, quantity } of events.values()) {
        const { requests, storageGbDays } = customers.get(customer) ?? { requests: 0, storageGbDays: 0 }
        customers.set(customer, {
          customer,
          requests: requests + (meter === "requests" ? quantity : 0),
          storageGbDays: storageGbDays + (meter === "storage_gb_days" ? quantity : 0)
        })
      }
      return Stream.fromIterable(customers.values())
    }),
    Stream.unwrap
  )

const [file = fileURLToPath(new URL("usage-2025-06.ndjson", import.meta.url)), month = "2025-06"] = process.argv.slice(2)
const period = Result.getOrThrow(parsePeriod(month))
const amount = Schema.decodeSync(AmountMinor)
const usd = Schema.decodeSync(Currency)("usd")
const receipts = process.env["RECEIPTS"] ?? "receipts"

const invoices = RunDefinition.items("usage-invoices", {
  params: Schema.Struct({ file: Schema.String, month: Schema.String }),
  item: Metered,
  items: ({ file, month }) => metered(file, month)
})
  .stage("rate", {
    output: Invoice,
    run: (customers) =>
      Effect.succeed(customers.map(({ customer, requests, storageGbDays }) => {
        const thousands = inThousands(requests)
        const requestsMinor = Math.min(thousands, 100) * 40 + Math.max(0, thousands - 100) * 25
        return { customer, subtotalMinor: requestsMinor + storageGbDays * 3, discountMinor: 0, taxMinor: 0 }
      }).filter(({ subtotalMinor }) => subtotalMinor > 0))
  })
  .stage("discount", {
    output: Invoice,
    run: Effect.forEach((invoice) =>
      Effect.map(accountOf(invoice.customer), ({ discountPercent }) => ({ ...invoice, discountMinor: percentOf(invoice.subtotalMinor, discountPercent) })))
  })
  .stage("tax", {
    output: Invoice,
    // A call of somebody else's service, perhaps: it has a deadline, and is tried again.
    timeout: "10 seconds",
    retry: Schedule.exponential("200 millis").pipe(Schedule.upTo({ times: 4 })),
    run: Effect.forEach((invoice) =>
      Effect.map(accountOf(invoice.customer), ({ taxPercent }) => ({ ...invoice, taxMinor: percentOf(invoice.subtotalMinor - invoice.discountMinor, taxPercent) })))
  })
  .charge(({ customer, discountMinor, subtotalMinor, taxMinor }) =>
    new ChargeRequest({
      namespace: defaultNamespace, customerId: customer, billingPeriod: period, item: "usage", currency: usd,
      amountMinor: amount(subtotalMinor - discountMinor + taxMinor), stripeCustomerId: accounts[customer]!.stripe
    })
  )
  .after("receipt", {
    // At least once: the same charge writes the same file.
    run: (rows) =>
      Effect.forEach(rows.filter(({ state }) => state === "succeeded"), ({ paymentIntentId, receivedMinor, request }) =>
        Effect.tryPromise({
          try: async () => {
            await mkdir(receipts, { recursive: true })
            await writeFile(`${receipts}/${request.customerId}-${month}.json`, JSON.stringify({ paymentIntentId, receivedMinor, currency: request.currency }))
          },
          catch: (cause) => ({ message: String(cause) })
        }), { discard: true })
  })

const program = Effect.gen(function*() {
  const runs = yield* Runs
  const name = `usage-${month}`
  const { isNew } = yield* runs.start({ name, definition: invoices.name, params: { file, month }, options: { reconcile: false }, actor: "metering" })
  const end = Option.getOrThrow(yield* Stream.runLast(runs.watch(name, "200 millis")))
  const counts = end.counted.map(({ currency, receivedMinor, rows, state }) => `${rows} ${state}, ${receivedMinor} ${currency} minor units`)
  console.log(`${name} ${isNew ? "is" : "was"} ${end.run.state}: ${counts.join("; ")}${end.run.detail === null ? "" : ` (${end.run.detail})`}`)
})

program.pipe(
  Effect.provide(PurserEngine.layerNoDefinitions.pipe(Layer.provide([RunDefinitions.layer(invoices), Purser.layerConfig]))),
  Effect.scoped,
  NodeRuntime.runMain
)
