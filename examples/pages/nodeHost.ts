import { type ChargeInput, Purser } from "@purser/purser"

const invoice: ChargeInput = { customerId: "cust_host", billingPeriod: "2026-05", amountMinor: 1999, currency: "usd", stripeCustomerId: "cus_123" }
const rows = [invoice, { ...invoice, item: "seats" }]
const show = (state: string, succeeded: number, all: number) => {
  if (state === "finished") console.log(`${state}: ${succeeded} of ${all}`)
}
const cap = await Purser.make()
await cap.openCap({ billingPeriod: "2026-05", currency: "usd", expectedMinor: 10_000 })
await cap.close()

// #region
const purser = await Purser.make()                 // the environment; Purser.make({ PURSER_STRIPE_KEY: "…" }) goes before it

const outcome = await purser.charge(invoice)       // Succeeded, Declined, Rejected …: settled facts are values
const run = await purser.run({ name: "may", rows })    // an array, or an async iterable: a cursor of your database
await run.pause("an incident")                     // nothing more is sent; also cancel(reason), extend(rows), status(), done()
await run.resume()
for await (const { counts, state } of run) show(state, counts.succeeded, counts.rows)

await purser.pause({ reason: "an incident" })      // all charging of the database, in every process
await purser.resume({ reason: "it is over" })
const { caps, pauses } = await purser.status({ billingPeriod: "2026-05" })   // counts and sums by state too
await purser.close()                               // takes nothing new, finishes what is in work; runs and dunning go on at the next start
// #endregion

console.log(outcome._tag, caps.length, pauses.length)
