/**
 * Questions that show whether a key has a permission and can change nothing: reads of one object, and writes to an object
 * that does not exist. Stripe looks at the permission first, so that "no such object" means yes.
 */
import type { Stripe } from "stripe"

/** A resource of restricted keys, by the name that Stripe's refusals use (`rak_<name>_read`). */
export interface Probe {
  readonly resource: string
  readonly read?: (stripe: Stripe) => PromiseLike<unknown>
  readonly write?: (stripe: Stripe) => PromiseLike<unknown>
}

const one = { limit: 1 }

/** What is asked, in the order in which it is told. Nothing here has an id that Stripe could have given. */
export const probes: ReadonlyArray<Probe> = [
  {
    resource: "payment_intent",
    read: (stripe) => stripe.paymentIntents.list(one),
    write: (stripe) => stripe.paymentIntents.cancel("pi_NONE")
  },
  {
    resource: "charge",
    read: (stripe) => stripe.charges.list(one),
    write: (stripe) => stripe.charges.update("ch_NONE", {})
  },
  {
    resource: "invoice",
    read: (stripe) => stripe.invoices.list(one),
    write: (stripe) => stripe.invoices.voidInvoice("in_NONE")
  },
  {
    resource: "customer",
    read: (stripe) => stripe.customers.retrieve("cus_NONE"),
    write: (stripe) => stripe.customers.update("cus_NONE", {})
  },
  {
    resource: "payment_method",
    read: (stripe) => stripe.paymentMethods.retrieve("pm_NONE"),
    write: (stripe) => stripe.paymentMethods.detach("pm_NONE")
  },
  {
    resource: "dispute",
    read: (stripe) => stripe.disputes.list(one),
    write: (stripe) => stripe.disputes.close("dp_NONE")
  },
  { resource: "event", read: (stripe) => stripe.events.list(one) },
  {
    resource: "webhook",
    read: (stripe) => stripe.webhookEndpoints.list(one),
    write: (stripe) => stripe.webhookEndpoints.update("we_NONE", {})
  },
  { resource: "balance", read: (stripe) => stripe.balance.retrieve() },
  {
    resource: "payout",
    read: (stripe) => stripe.payouts.list(one),
    write: (stripe) => stripe.payouts.cancel("po_NONE")
  },
  {
    resource: "transfer",
    read: (stripe) => stripe.transfers.list(one),
    write: (stripe) => stripe.transfers.update("tr_NONE", {})
  }
]
