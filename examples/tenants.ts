/**
 * One installation for many tenants, each with a connected account of its own. The account is named by the charge's namespace, so
 * that it is part of the identity: the same customer id at two tenants is two charges, with two keys and two caps.
 *
 *     PURSER_STRIPE_KEY=rk_… node examples/tenants.ts
 */
import { Purser } from "@purser/purser"
import { namespaceFor } from "@purser/stripe"

/** What your own database knows of your tenants. */
const tenants = [
  { name: "berlin", account: "acct_1Berlin", expectedMinor: 2500, bills: [["cust_1", 1000], ["cust_2", 1500]] },
  { name: "oslo", account: "acct_1Oslo", expectedMinor: 1100, bills: [["cust_1", 1100], ["cust_3", 9900]] }
] as const

const purser = await Purser.make() // PURSER_STRIPE_KEY and friends from the environment
const [billingPeriod, currency] = ["2026-07", "usd"]

for (const { account, bills, expectedMinor, name } of tenants) {
  const namespace = namespaceFor("acme-platform", account)
  await purser.openCap({ namespace, billingPeriod, currency, expectedMinor })
  for (const [customerId, amountMinor] of bills) {
    // The customer is one of the tenant's own account.
    const charge = { namespace, customerId, billingPeriod, currency, amountMinor, stripeCustomerId: `cus_${customerId}` }
    const outcome = await purser.charge(charge)
    const detail = outcome._tag === "Rejected" ? ` (${outcome.code})` : outcome.alreadySettled ? " (charged before)" : ""
    console.log(`${name} ${customerId}: ${outcome._tag}${detail}`)
  }
}

await purser.close()
